/**
 * The admin API of real processes: several workers are one program to it, and it
 * goes on while another process takes over.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import {
  type AdminClient,
  adminClient,
  AdminError,
} from "../../admin/ask/admin_client.ts";
import type { ActionAnswer } from "../../proto/admin/api.ts";
import type { ConduitsAnswer } from "../../proto/admin/conduit_answer.ts";
import type { LoginAnswer, SessionAnswer } from "../../proto/admin/login.ts";
import { Workspace } from "../support/program/workspace.ts";
import type { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { ServerStage } from "../support/rigs/server_stage.ts";
import { workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

function onSocket(folder: string): AdminClient {
  return adminClient("server", { kind: "unix", path: `${folder}/admin.sock` });
}

const until = (isSo: () => boolean | Promise<boolean>) =>
  eventually("it comes", isSo);

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

Deno.test("two workers are one program to who asks, and to who acts", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const folder = stage.workspace.path("state");
  const auditLog = stage.workspace.path("audit.log");
  const server = stage.start(
    "--workers=2",
    `--state-dir=${folder}`,
    `--audit-log=${auditLog}`,
  );
  await workersOf(server);
  await until(() => isThere(`${folder}/admin.sock`));
  await stage.addAgents(1);
  // To each of the two.
  await until(async () => {
    const answer = await fetch(`${stage.healthUrl}/metrics`);
    return /_ready_backend_connections 2\n/.test(await answer.text());
  });
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 12; count++) {
    held.push(await stage.connect("grpc"));
  }
  const client = onSocket(folder);
  const list = (query = "") =>
    client.get<ConduitsAnswer>(`/v1/conduits${query}`);
  const { conduits, total } = await list();
  assertEquals([conduits.length, total], [12, 12]);
  const ids = conduits.map(({ id }) => id);
  assertEquals(new Set(ids).size, 12);
  assertEquals((await list("?limit=5&sort=age")).conduits.length, 5);

  // Whichever worker has it.
  for (const id of ids.slice(0, 6)) {
    const one = await client.get<{ id: string }>(`/v1/conduits/${id}`);
    assertEquals(one.id, id);
    const { message } = await client.post<ActionAnswer>(
      `/v1/conduits/${id}/kill`,
    );
    assertMatch(message, /is ended/);
  }
  await until(async () => (await list()).total === 6);
  const twice = await assertRejects(
    () => client.post(`/v1/conduits/${ids[0]}/kill`),
    AdminError,
  );
  assertEquals(twice.status, 404);
  const ended = await Promise.all(
    held.map((one) =>
      Promise.race([one.closed.then(() => 1), Promise.resolve(0)])
    ),
  );
  assert(ended.reduce<number>((sum, one) => sum + one, 0) <= 6);

  // Who did it is in the audit log of the worker that did.
  await until(async () => {
    const texts = await Promise.all(
      [auditLog, `${auditLog}.w1`].map((path) =>
        Deno.readTextFile(path).catch(() => "")
      ),
    );
    const lines = texts.join("").split("\n")
      .filter((line) => line.includes('"event":"admin"'));
    return lines.length === 6 &&
      lines.every((line) =>
        line.includes(`"who":{"name":"uid ${Deno.uid()}","role":"operate"}`)
      );
  });

  await assertBrowserLooks(client, ids.slice(6));
  for (const one of held) one.reset("over");
});

/** A browser that was let in to look sees all, and does nothing. */
async function assertBrowserLooks(client: AdminClient, ids: readonly string[]) {
  const unknown = await assertRejects(
    () => client.get("/v1/no-such"),
    AdminError,
  );
  assertEquals(unknown.status, 404);
  const login = await client.post<LoginAnswer>("/v1/logins", { role: "view" });
  const entered = await fetch(
    new URL("/v1/session", login.url),
    {
      method: "POST",
      headers: { "x-tunnel-admin": "1", "content-type": "application/json" },
      body: JSON.stringify({ code: login.code }),
    },
  );
  const who = await entered.json() as SessionAnswer;
  assertEquals(who.role, "view");
  const cookie = entered.headers.get("set-cookie")!.split(";")[0]!;
  const seen = await fetch(new URL("/v1/conduits", login.url), {
    headers: { cookie },
  });
  assertEquals((await seen.json()).total, ids.length);
  const refused = await fetch(
    new URL(`/v1/conduits/${ids[0]}/kill`, login.url),
    { method: "POST", headers: { cookie, "x-tunnel-admin": "1" } },
  );
  const { total } = await client.get<ConduitsAnswer>("/v1/conduits");
  assertEquals([refused.status, total], [403, ids.length]);
  await refused.body?.cancel();
}

Deno.test("another process takes the socket over with the rest", async () => {
  await using stage = new ServerStage(await Workspace.make());
  const folder = stage.workspace.path("state");
  const old = stage.start(`--state-dir=${folder}`);
  await old.untilPrinted(/server started .*adminSocket=/);
  await stage.addAgents(1);
  const client = onSocket(folder);
  let isOver = false;
  let answered = 0;
  const asking = (async () => {
    while (!isOver) {
      await client.get("/v1/conduits");
      answered++;
    }
  })();
  const young = stage.start(`--state-dir=${folder}`, "--replace");
  await young.untilPrinted(/server started .*adminSocket=/);
  await old.ended;
  const before = answered;
  await until(() => answered > before + 5);
  isOver = true;
  await asking;
  await young.stop("SIGTERM");
  assertEquals(await isThere(`${folder}/admin.sock`), false);
});

/**
 * The admin API of real processes: each of several workers has one, and it goes
 * on while another process takes over.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import type { ConduitsAnswer } from "../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import type { LoginAnswer, SessionAnswer } from "../../proto/admin/api.ts";
import type { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { type Ran, tunnel } from "../support/program/command_line.ts";
import { byWorker, workersOf } from "../support/rigs/workers.ts";
import { eventually } from "../support/watch/patience.ts";

function onSocket(folder: string, worker = ""): AdminClient {
  const path = `${folder}/admin${worker}.sock`;
  return new AdminClient("server", { kind: "unix", path });
}

const until = (isSo: () => boolean | Promise<boolean>) =>
  eventually("it comes", isSo);

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

Deno.test("two workers answer each for itself, and commands ask both", async () => {
  await using stage = await TunnelProcesses.open();
  const folder = stage.workspace.path("state");
  const auditLog = stage.workspace.path("audit.log");
  const server = stage.start(
    "--workers=2",
    `--state-dir=${folder}`,
    `--audit-log=${auditLog}`,
  );
  await workersOf(server);
  const clients = [onSocket(folder), onSocket(folder, ".1")] as const;
  await until(() => isThere(`${folder}/admin.1.sock`));
  await stage.addAgents(1);
  await until(async () => {
    const counts = await byWorker(
      `${stage.healthUrl}/metrics`,
      "konnectivity_network_proxy_server_ready_backend_connections",
    );
    return counts.get(0) === 1 && counts.get(1) === 1;
  });
  const held: ConduitProbe[] = [];
  for (let count = 0; count < 12; count++) {
    held.push(await stage.hold("grpc"));
  }
  const idsOf = async (client: AdminClient) => {
    const { conduits } = await client.get<ConduitsAnswer>("/v1/conduits");
    return conduits.map(({ id }) => id);
  };
  const idsOfEach = () => Promise.all(clients.map(idsOf));
  const [first, second] = await idsOfEach() as [string[], string[]];
  assertEquals(new Set([...first, ...second]).size, 12);
  assertEquals(first.length, 6);
  for (const [worker, client] of clients.entries()) {
    const { program } = await client.get<StatusAnswer>("/v1/status");
    assertEquals([program.worker, program.workers], [worker, 2]);
  }

  const ask = (...argv: string[]) => tunnel([...argv, `--state-dir=${folder}`]);
  await assertEachShown(ask, [...first, ...second]);
  const gone = [...first.slice(0, 3), ...second.slice(0, 3)];
  const killed = await ask("conn", "kill", ...gone);
  // A busy machine may say that it still waits.
  assertEquals([killed.code, killed.output.match(/^Ended /gm)?.length], [0, 6]);
  await until(async () => (await idsOfEach()).flat().length === 6);
  const twice = await ask("conn", "kill", gone[0]!);
  assertMatch(twice.errors, /No connection/);
  const ended = await Promise.all(
    held.map((one) =>
      Promise.race([one.closed.then(() => 1), Promise.resolve(0)])
    ),
  );
  assert(ended.reduce<number>((sum, one) => sum + one, 0) <= 6);

  await untilAudited(auditLog);
  await assertBrowserLooks(clients[0], first.slice(3));
  for (const one of held) one.reset("over");
});

/** Who did it is in the audit log of the worker that did. */
async function untilAudited(auditLog: string): Promise<void> {
  await until(async () => {
    const counts = await Promise.all(
      [auditLog, `${auditLog}.w1`].map(async (path) => {
        const lines = (await Deno.readTextFile(path).catch(() => ""))
          .split("\n").filter((line) => line.includes('"event":"admin"'));
        assert(
          lines.every((line) =>
            line.includes(`"who":{"name":"uid ${Deno.uid()}","role":"operate"}`)
          ),
        );
        return lines.length;
      }),
    );
    return JSON.stringify(counts) === "[3,3]";
  });
}

type Ask = (...argv: string[]) => Promise<Ran>;

/** A person need not know which worker has what. */
async function assertEachShown(ask: Ask, ids: readonly string[]) {
  const list = await ask("conn", "list");
  assertMatch(list.output, /^server, worker 0:\n[^]*\n\nserver, worker 1:\n/);
  for (const id of ids) {
    assert(list.output.includes(id), `${id} is not in ${list.output}`);
  }
  const status = await ask("status");
  assertMatch(
    status.output,
    /^server .* worker 0 of 2[^]*server .* worker 1 of 2/,
  );
  const nodes = await ask("node", "list", "-o", "json");
  const { programs } = JSON.parse(nodes.output);
  assertEquals(programs.map((one: { worker: number }) => one.worker), [0, 1]);
  const top = await ask("top", "--count=1");
  assertMatch(top.output, /12 of 12 connections/);
}

/** A browser that was let in to look sees what its worker has, and does nothing. */
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
  await using stage = await TunnelProcesses.open();
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

import { OpenedAdminPort } from "../support/rigs/opened_admin_port.ts";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { AdminClient } from "../../admin/ask/admin_client.ts";
import type { AdminRole, LoginAnswer } from "../../proto/admin/api.ts";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { eventAnswer } from "../../net/admin/event_stream.ts";
import { openLibc } from "../../net/libc/libc.ts";
import { type AdminAccess } from "../../net/listen/admin_port.ts";

/** Ticks when it is told to. */
let tick = () => {};

const ROUTES: readonly AdminRoute[] = [{
  method: "GET",
  path: "/v1/watch",
  role: "view",
  answer: ({ signal }) =>
    eventAnswer(async () => {
      await new Promise<void>((resolve) => tick = resolve);
      return [{ name: "tick", data: 1 }];
    }, signal),
}];

/** A program, and browsers that were let in. */
class Opened extends OpenedAdminPort {
  static override async open(access: AdminAccess = {}): Promise<Opened> {
    return await new Opened(access, undefined, ROUTES).opened();
  }

  get origin(): string {
    return `http://${this.port.address}`;
  }

  async codeByToken(file = "admin.token"): Promise<string> {
    const answer = await fetch(`${this.origin}/v1/logins`, {
      method: "POST",
      headers: this.bearer(file),
    });
    return (await answer.json() as LoginAnswer).code;
  }

  /** @returns A cookie. */
  async enter(code: string): Promise<string> {
    const answer = await fetch(`${this.origin}/v1/session`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-tunnel-admin": "1" },
      body: JSON.stringify({ code }),
    });
    await answer.body?.cancel();
    assertEquals(answer.status, 200);
    return answer.headers.get("set-cookie")!.split(";")[0]!;
  }

  async role(cookie: string): Promise<AdminRole | undefined> {
    const answer = await fetch(`${this.origin}/v1/session`, {
      headers: { cookie },
    });
    return (await answer.json()).role;
  }

  /** Who asks by certificate. */
  async alice(people: ThrowawayCa): Promise<AdminClient> {
    const pair = await people.issue({
      commonName: "alice",
      organizations: ["ops"],
      names: ["a.example"],
      usage: "client",
    });
    const tls = {
      ca: `${this.folder}/ca`,
      cert: `${this.folder}/crt`,
      key: `${this.folder}/key`,
    };
    Deno.writeTextFileSync(tls.ca, people.cert);
    Deno.writeTextFileSync(tls.cert, pair.cert);
    Deno.writeTextFileSync(tls.key, pair.key);
    return new AdminClient("server", {
      kind: "tcp",
      host: "127.0.0.1",
      port: Number(this.port.remote.split(":").at(-1)),
      tls: { ...tls, serverName: "localhost" },
    });
  }
}

const SERVER = {
  commonName: "localhost",
  names: ["localhost"],
  usage: "server",
} as const;

Deno.test("who is taken out of admins, expires or whose authority goes is out of the browser", async () => {
  const people = await ThrowawayCa.create("people");
  const server = await people.issue(SERVER);
  let role: AdminRole | undefined = "operate";
  let ca = people.cert;
  const asked: string[] = [];
  await using one = await Opened.open({
    remote: {
      address: { hostname: "127.0.0.1", port: 0 },
      credentials: {
        get current() {
          return { ...server, ca };
        },
      },
      tls: { minVersion: "TLSv1.3" },
      whoIs: ({ identity: { commonName, names, certificate } }) => {
        asked.push([commonName, names, certificate?.organizations].join());
        return role && { role, name: commonName };
      },
    },
  });
  const client = await one.alice(people);
  const { code } = await client.post<LoginAnswer>("/v1/logins");
  const cookie = await one.enter(code);
  assertEquals(await one.role(cookie), "operate");
  // The policy is asked about the same names as over TLS.
  assertEquals(new Set(asked), new Set(["alice,DNS:a.example,ops"]));
  role = "view";
  assertEquals(await one.role(cookie), "view");
  role = undefined;
  assertEquals(await one.role(cookie), undefined);
  role = "operate";
  ca = (await ThrowawayCa.create("others")).cert;
  assertEquals(await one.role(cookie), undefined);
  ca = people.cert;
  assertEquals(await one.role(cookie), "operate");
  const { now } = Date;
  Date.now = () => now() + 400 * 24 * 3_600_000;
  try {
    assertEquals(await one.role(cookie), undefined);
  } finally {
    Date.now = now;
  }
});

Deno.test("a browser goes with the token that let it in, and what it watches ends", async () => {
  await using one = await Opened.open();
  const operator = await one.enter(await one.codeByToken());
  const viewer = await one.enter(await one.codeByToken("admin-view.token"));
  const watching = await fetch(`${one.origin}/v1/watch`, {
    headers: { cookie: viewer },
  });
  const reader = watching.body!.pipeThrough(new TextDecoderStream())
    .getReader();
  assertMatch((await reader.read()).value!, /^: ok/);
  tick();
  assertMatch((await reader.read()).value!, /event: tick/);
  Deno.writeTextFileSync(`${one.folder}/admin-view.token`, "f".repeat(64));
  assertEquals(await one.role(viewer), undefined);
  assertEquals(await one.role(operator), "operate");
  tick();
  const after = await reader.read().catch(() => ({ done: true }));
  assertEquals(after.done, true);
});

const NOBODY = 65_534;

/** As another user: `setpriv` of util-linux. */
async function loginAsNobody(folder: string): Promise<LoginAnswer> {
  const { stdout } = await new Deno.Command("setpriv", {
    args: [
      ...[`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"],
      ...["curl", "-s", "-X", "POST"],
      ...["--unix-socket", `${folder}/admin.sock`],
      "http://localhost/v1/logins",
    ],
  }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test({
  name: "who leaves the socket's group, or its entry, is out of the browser",
  ignore: Deno.uid() !== 0 || openLibc() === undefined,
  async fn() {
    let role: AdminRole | undefined = "operate";
    const roleOfUser = () => role;
    await using one = await Opened.open({ socketGroup: NOBODY, roleOfUser });
    Deno.chmodSync(one.folder, 0o755);
    const cookie = await one.enter((await loginAsNobody(one.folder)).code);
    assertEquals(await one.role(cookie), "operate");
    // The group is that user's own.
    role = undefined;
    assertEquals(await one.role(cookie), "view");
    await using other = await Opened.open({ socketGroup: 12_345, roleOfUser });
    Deno.chmodSync(other.folder, 0o755);
    Deno.chmodSync(`${other.folder}/admin.sock`, 0o666);
    role = "view";
    const kept = await other.enter((await loginAsNobody(other.folder)).code);
    assertEquals(await other.role(kept), "view");
    role = undefined;
    assertEquals(await other.role(kept), undefined);
    // Its process is in that group, as far as the kernel says, and it is not.
    const { message } = await loginAsNobody(other.folder) as unknown as {
      message: string;
    };
    assert(message.includes("user database does not have that user"), message);
  },
});

Deno.test("silent strangers lock nobody out of the port for other machines, and are counted", async () => {
  const people = await ThrowawayCa.create("people");
  const server = await people.issue(SERVER);
  await using one = await Opened.open({
    remote: {
      // Strangers come from ::1, and are a source of their own.
      address: { hostname: "::", port: 0 },
      credentials: { current: { ...server, ca: people.cert } },
      tls: { minVersion: "TLSv1.3" },
      whoIs: () => ({ role: "operate", name: "alice" }),
    },
  });
  const alice = await one.alice(people);
  const port = Number(one.port.remote.split(":").at(-1));
  const crowd: Deno.Conn[] = [];
  const connect = async (count: number, text = "") => {
    for (let at = 0; at < count; at++) {
      const conn = await Deno.connect({ hostname: "::1", port });
      crowd.push(conn);
      // One that has waited longest may be ended before it has spoken.
      await conn.write(new TextEncoder().encode(text)).catch(() => {});
    }
  };
  // Nothing, the begin of a ClientHello, and what is none.
  for (const text of ["", "\x16\x03\x01\x02\x00\x01", "GET / HTTP/1.1"]) {
    await connect(150, text);
    assertEquals(
      await alice.get<{ role: string }>("/v1/session"),
      { role: "operate", name: "alice" } as { role: string },
    );
  }
  assert(one.reached.has("http_connections source"), [...one.reached].join());
  for (const conn of crowd) conn.close();
});

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { ListenError } from "../bind/listen_error.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { guardNames, listenHttp, listenTcp, listenUnix } from "./listeners.ts";
import type { Stream } from "../stream/stream.ts";

const quiet = {
  onConnection: (conn: Stream) => conn.close(),
  onProblem: (line: string) => {
    throw new Error(line);
  },
};

Deno.test("the bound port is reported, and accepting works until close", async () => {
  const accepted = Promise.withResolvers<Stream>();
  const listener = listenTcp({ hostname: "127.0.0.1", port: 0 }, {
    ...quiet,
    onConnection: accepted.resolve,
  });
  assertEquals(listener.address, `127.0.0.1:${listener.port}`);
  const conn = await Deno.connect({ port: listener.port });
  (await accepted.promise).close();
  conn.close();
  listener.close();
  await assertRejects(() => Deno.connect({ port: listener.port }));
});

Deno.test("a port in use and an address of others are told apart", () => {
  const listener = listenTcp({ hostname: "127.0.0.1", port: 0 }, quiet);
  const { port } = listener;
  const at = { hostname: "127.0.0.1", port };
  for (
    const listen of [
      () => listenTcp(at, quiet),
      () => listenHttp(at, () => new Response()),
    ]
  ) {
    const error = assertThrows(
      listen,
      ListenError,
      `Cannot listen on 127.0.0.1:${port}: something listens there already`,
    );
    assertEquals(error.problem, "in-use");
  }
  const error = assertThrows(
    () => listenTcp({ hostname: "192.0.2.1", port: 0 }, quiet),
    ListenError,
  );
  assertEquals(error.problem, "bad-address");
  listener.close();
});

Deno.test("an empty host means every address", async () => {
  const listener = listenTcp({ hostname: "", port: 0 }, quiet);
  (await Deno.connect({ hostname: "127.0.0.1", port: listener.port })).close();
  listener.close();
});

Deno.test("a unix socket is for owner and group", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/tunnel.sock`;
    const listener = await listenUnix(path, quiet);
    assertEquals(Deno.statSync(path).mode! & 0o777, 0o770);
    (await Deno.connect({ transport: "unix", path })).close();
    listener.close();
  });
});

Deno.test("programs that remove one left-over at once: a refused one is told why", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/tunnel.sock`;
    await leaveSocketFile(path);
    const all = Array.from({ length: 8 }, () => listenUnix(path, quiet));
    for (const one of await Promise.allSettled(all)) {
      if (one.status === "fulfilled") one.value.close();
      else assertInstanceOf(one.reason, ListenError);
    }
  });
});

Deno.test("a left-over socket file is removed, one in use is not", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/tunnel.sock`;
    await leaveSocketFile(path);
    const refusal = await assertRejects(
      () => listenUnix(path, quiet, false),
      ListenError,
      "may not be removed",
    );
    assertEquals(refusal.problem, "in-use");
    const listener = await listenUnix(path, quiet);
    await assertRejects(
      () => listenUnix(path, quiet),
      ListenError,
      "something listens there already",
    );
    (await Deno.connect({ transport: "unix", path })).close();
    listener.close();
  });
});

Deno.test("a file that is no socket is never removed", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/precious`;
    Deno.writeTextFileSync(path, "x");
    await assertRejects(
      () => listenUnix(path, quiet),
      ListenError,
      "no socket",
    );
    assertEquals(Deno.readTextFileSync(path), "x");
    await assertRejects(
      () => listenUnix(`${folder}/none/tunnel.sock`, quiet),
      ListenError,
      "no such directory",
    );
  });
});

async function statusFor(bound: string, host: string): Promise<number> {
  const handler = guardNames(bound, () => new Response("secrets"));
  const request = new Request(`http://${host}/debug/syncz`);
  return (await handler(request, new ScriptedStream())).status;
}

Deno.test("a port of loopback answers by address and as localhost, and to no page's own name", async () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [bound: string, host: string, status: number])[] = [
    ["127.0.0.1", "127.0.0.1:8095",       200],
    ["127.0.0.1", "localhost:8095",       200],
    ["127.0.0.1", "LocalHost",            200],
    ["::1",       "[::1]:8095",           200],
    ["127.0.0.1", "evil.example:8095",    421],
    ["127.0.0.1", "127.0.0.1.nip.io",     421],
    ["::1",       "localhost.evil.example", 421],
    ["0.0.0.0",   "admin.example:8095",   200],
    ["::",        "admin.example:8095",   200],
  ];
  for (const [bound, host, status] of cases) {
    assertEquals(await statusFor(bound, host), status, `${bound} ${host}`);
  }
});

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  await use(folder);
  await Deno.remove(folder, { recursive: true });
}

/** As a killed process leaves it: `close` removes only the other name. */
async function leaveSocketFile(path: string): Promise<void> {
  const listener = Deno.listen({ transport: "unix", path: `${path}.bound` });
  await Deno.link(`${path}.bound`, path);
  listener.close();
  assert(Deno.lstatSync(path).isSocket);
}

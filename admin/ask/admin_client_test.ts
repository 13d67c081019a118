import { assertEquals, assertRejects } from "@std/assert";
import { listenHttp, listenUnix } from "../../net/listen/listeners.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { HttpPort } from "../../net/admin/http_port.ts";
import { type AdminAddress, AdminClient, AdminError } from "./admin_client.ts";

const TOKEN = "ab".repeat(32);

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/v1/refused") {
    return Response.json({ code: "TUN600", message: "no" }, { status: 403 });
  }
  if (pathname === "/v1/whole") {
    const message = "Cannot ping x: it has no link to this server";
    return Response.json({ code: "TUN501", message }, { status: 404 });
  }
  if (pathname === "/v1/odd") return new Response("<html>");
  return Response.json({
    method: request.method,
    body: await request.text(),
    token: request.headers.get("authorization"),
    guard: request.headers.get("x-tunnel-admin"),
  });
}

function onPort(tokenFile?: string) {
  const listener = listenHttp({ hostname: "127.0.0.1", port: 0 }, answer);
  const address: AdminAddress = {
    kind: "tcp",
    host: "127.0.0.1",
    port: listener.port,
    token: TOKEN,
    tokenFile,
  };
  return { listener, client: new AdminClient("server", address) };
}

Deno.test("what is asked over loopback shows the token, and what is done says what", async () => {
  const { listener, client } = onPort("/nowhere/admin.token");
  const token = `Bearer ${TOKEN}`;
  assertEquals(await client.get("/v1/status"), {
    method: "GET",
    body: "",
    token,
    guard: null,
  });
  assertEquals(await client.post("/v1/x", { reason: "stolen" }), {
    method: "POST",
    body: '{"reason":"stolen"}',
    token,
    guard: "1",
  });
  listener.close();
  await listener.finished;
});

Deno.test("a token goes nowhere but to loopback, whatever its name said", async () => {
  const [own] = Deno.networkInterfaces().filter(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  );
  if (own === undefined) return;
  const seen: (string | null)[] = [];
  const listener = listenHttp({ hostname: own.address, port: 0 }, (request) => {
    seen.push(request.headers.get("authorization"));
    return Response.json({});
  });
  const to = { kind: "tcp", host: own.address, port: listener.port } as const;
  await assertRejects(
    () => new AdminClient("server", { ...to, token: TOKEN }).get("/v1/status"),
    AdminError,
    "which is not this machine's loopback, so no token is shown",
  );
  assertEquals(seen, []);
  await new AdminClient("server", to).get("/v1/status");
  assertEquals(seen, [null]);
  listener.close();
  await listener.finished;
});

Deno.test("a unix socket is asked the same", async () => {
  const path = `${Deno.makeTempDirSync()}/admin.sock`;
  const port = new HttpPort(answer);
  const listener = await listenUnix(path, {
    use: "administration",
    onConnection: (stream) => void port.accept(stream),
    onProblem: () => {},
  });
  const client = new AdminClient("agent", { kind: "unix", path });
  assertEquals(client.where, `the agent at unix:${path}`);
  const { method } = await client.get<{ method: string }>("/v1/status");
  assertEquals(method, "GET");
  listener.close();
  port.close();
});

Deno.test("what only reads is asked once more where it was cut off, and nothing is done twice", async () => {
  const path = `${Deno.makeTempDirSync()}/admin.sock`;
  const port = new HttpPort(answer);
  let [cuts, came] = [0, 0];
  const listener = await listenUnix(path, {
    use: "administration",
    onConnection: (stream) =>
      ++came <= cuts ? stream.close() : void port.accept(stream),
    onProblem: () => {},
  });
  const client = new AdminClient("agent", { kind: "unix", path });
  cuts = came + 1;
  await client.get("/v1/status");
  for (const [ask, times] of [["get", 2], ["post", 1]] as const) {
    cuts = came + 2;
    const before = came;
    await assertRejects(() => client[ask]("/v1/status"), AdminError);
    assertEquals(came - before, times, ask);
  }
  listener.close();
  port.close();
});

Deno.test("why there is no answer is one sentence, with the code that came", async () => {
  const { listener, client } = onPort();
  const at = `127.0.0.1:${listener.port}`;
  const refused = await assertRejects(
    () => client.get("/v1/refused"),
    AdminError,
    `Cannot ask the server at ${at}: no`,
  );
  assertEquals([refused.status, refused.code], [403, "TUN600"]);
  const whole = await assertRejects(() => client.get("/v1/whole"), AdminError);
  assertEquals(whole.message, "Cannot ping x: it has no link to this server");
  await assertRejects(
    () => client.get("/v1/odd"),
    AdminError,
    `Cannot ask the server at ${at}: what answers there is no program of ours`,
  );
  listener.close();
  await listener.finished;
  await assertRejects(
    () => client.get("/v1/status"),
    AdminError,
    `Cannot ask the server at ${at}: no program answers there; is it running?`,
  );
  await assertRejects(
    () =>
      new AdminClient("agent", { kind: "unix", path: "/nowhere/x" }).get("/"),
    AdminError,
    "Cannot ask the agent at unix:/nowhere/x: there is no such socket; is it " +
      "running?",
  );
});

Deno.test("who answers nothing at all stands still: told after 2 s, given up after 5", async () => {
  const path = `${Deno.makeTempDirSync()}/admin.sock`;
  // As the kernel takes connections for a process that does not run.
  using listener = Deno.listen({ transport: "unix", path });
  const [timers, lines] = [new FakeTimers(), new Array<string>()];
  const client = new AdminClient("server", { kind: "unix", path }, {
    timers,
    onWaiting: (line) => lines.push(line),
  });
  const asked = client.get("/v1/status").catch((error: Error) => error.message);
  using first = await listener.accept();
  timers.advance(1_000);
  // Something small is asked beside it.
  using probe = await listener.accept();
  await first.read(new Uint8Array(100));
  await probe.read(new Uint8Array(100));
  assertEquals(lines, []);
  timers.advance(1_000);
  assertEquals(lines, [`still waiting for the server at unix:${path}`]);
  timers.advance(3_000);
  assertEquals(
    await asked,
    `Cannot ask the server at unix:${path}: it hangs (no answer ` +
      "within 5 s); run `tunnel doctor server`",
  );
  assertEquals(timers.pendingCount, 0);
});

Deno.test("who answers something else is waited for: a trace takes its time", async () => {
  const path = `${Deno.makeTempDirSync()}/admin.sock`;
  const [timers, lines] = [new FakeTimers(), new Array<string>()];
  const [asked, probed] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
  ];
  const slow = Promise.withResolvers<Response>();
  const port = new HttpPort((request) => {
    if (!request.url.endsWith("/v1/trace")) {
      probed.resolve();
      return Promise.resolve(new Response("no", { status: 404 }));
    }
    asked.resolve();
    return slow.promise;
  });
  const listener = await listenUnix(path, {
    use: "administration",
    onConnection: (stream) => void port.accept(stream),
    onProblem: () => {},
  });
  const client = new AdminClient("server", { kind: "unix", path }, {
    timers,
    onWaiting: (line) => lines.push(line),
  });
  const answer = client.post("/v1/trace");
  await asked.promise;
  timers.advance(1_000);
  await probed.promise;
  // What is answered later is here, so the probe's answer is.
  await assertRejects(() => client.get("/v1/other"), AdminError);
  timers.advance(20_000);
  slow.resolve(Response.json("late"));
  assertEquals(await answer, "late");
  assertEquals(lines, []);
  listener.close();
  port.close();
});

import { assertEquals, assertRejects } from "@std/assert";
import { listenHttp, listenUnix } from "../../net/listen/listeners.ts";
import { HttpPort } from "../../net/admin/http_port.ts";
import { type AdminAddress, adminClient, AdminError } from "./admin_client.ts";

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
  if (pathname === "/v1/watch") {
    const text = 'event: status\ndata: {"a":1}\n\n: beat\n\ndata: [2]\n\n';
    return new Response(text);
  }
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
  return { listener, client: adminClient("server", address) };
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

/** Listens on a port of loopback as another user, and prints what it is sent. */
const STRANGER = `
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
c, _ = s.accept(); c.settimeout(2)
print("sent", c.recv(9999), flush=True)
`;

Deno.test({
  name: "a token is shown to no other user who took the port",
  ignore: Deno.build.os !== "linux" || Deno.uid() !== 0,
  async fn() {
    const tokenFile = await Deno.makeTempFile();
    await using stranger = new Deno.Command("python3", {
      args: ["-c", STRANGER],
      stdout: "piped",
    }).spawn();
    const lines = stranger.stdout.pipeThrough(new TextDecoderStream())
      .getReader();
    const port = Number((await lines.read()).value);
    const to = { kind: "tcp", host: "127.0.0.1", port, token: TOKEN } as const;
    await assertRejects(
      () => adminClient("server", { ...to, tokenFile }).get("/v1/status"),
      AdminError,
      "user 65534 listens there, who is neither you nor the owner of " +
        tokenFile,
    );
    assertEquals((await lines.read()).value, "sent b''\n");
    await lines.cancel();
    await Deno.remove(tokenFile);
  },
});

Deno.test("a unix socket is asked the same", async () => {
  const path = `${Deno.makeTempDirSync()}/admin.sock`;
  const port = new HttpPort(answer);
  const listener = await listenUnix(path, {
    use: "administration",
    onConnection: (stream) => void port.accept(stream),
    onProblem: () => {},
  });
  const client = adminClient("agent", { kind: "unix", path });
  assertEquals(client.where, `the agent at unix:${path}`);
  const { method } = await client.get<{ method: string }>("/v1/status");
  assertEquals(method, "GET");
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
    `Cannot ask the server at ${at}: nobody answers there; is it running?`,
  );
  await assertRejects(
    () => adminClient("agent", { kind: "unix", path: "/nowhere/x" }).get("/"),
    AdminError,
    "Cannot ask the agent at unix:/nowhere/x: there is no such socket; is it " +
      "running?",
  );
});

Deno.test("events are followed until they end", async () => {
  const { listener, client } = onPort();
  const seen: unknown[] = [];
  await assertRejects(
    () =>
      client.watch(
        "/v1/watch",
        (name, data) => seen.push([name, data]),
        new AbortController().signal,
      ),
    AdminError,
    "it ended the answer",
  );
  assertEquals(seen, [["status", { a: 1 }], ["message", [2]]]);
  listener.close();
  await listener.finished;
});

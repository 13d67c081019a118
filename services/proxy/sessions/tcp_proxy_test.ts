import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import {
  ask,
  deadPort,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { readToEnd, writeAll } from "../../../tests/support/peers/sockets.ts";
import { BACKENDS_TRIED_MAX } from "./backend_dialer.ts";
import { EJECTION_FAILURES, EJECTION_MS } from "../balancer/backend.ts";
import { EndpointDialError } from "../endpoints/endpoint_dialer.ts";
import { TcpPortProxy } from "./tcp_proxy.ts";

const KEY = "default/web";
const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  about: Parameters<typeof service>[1] = {},
) {
  return rig.serves(service("web", about), ports);
}

/** It may be so before the platform has said that they are connected. */
async function assertReset(connected: Deno.Conn | Promise<Deno.Conn>) {
  await assertRejects(async () => {
    using conn = await connected;
    await conn.read(new Uint8Array(1));
  }, Deno.errors.ConnectionReset);
}

Deno.test("a backend's end reaches the client, which may go on", async () => {
  await using rig = new ProxyRig();
  const heard = Promise.withResolvers<string>();
  const backend = rig.serve(async (conn) => {
    await writeAll(conn, encode("that is all"));
    await conn.closeWrite();
    heard.resolve(decode(await readToEnd(conn)));
    conn.close();
  });
  serveAt(rig, [backend]);
  const conn = await rig.connect(KEY);
  assertEquals(decode(await readToEnd(conn)), "that is all");
  await writeAll(conn, encode("not for me"));
  await conn.closeWrite();
  assertEquals(await heard.promise, "not for me");
  conn.close();
});

Deno.test("two megabytes arrive as they were sent, both ways", async () => {
  await using rig = new ProxyRig();
  const port = serveAt(rig, [rig.echo()]);
  const conn = await rig.connect(KEY);
  const sent = new Uint8Array(2_000_000).map((_, index) => 32 + index % 91);
  const [received] = await Promise.all([
    readToEnd(conn),
    writeAll(conn, sent).then(() => conn.closeWrite()),
  ]);
  assertEquals(received, sent);
  const [backend] = port.balancer.backends;
  assertEquals(
    [backend!.bytesSent, backend!.bytesReceived],
    [sent.length, sent.length],
  );
  assertEquals(backend!.connectionsTotal, 1);
  conn.close();
});

Deno.test("a backend's reset is a reset for the client", async () => {
  await using rig = new ProxyRig();
  const backend = rig.serve(async (conn) => {
    await conn.read(new Uint8Array(1));
    denoStream(conn).reset();
  });
  serveAt(rig, [backend]);
  const conn = await rig.connect(KEY);
  await writeAll(conn, encode("more than one byte"));
  await assertReset(conn);
});

Deno.test("a client's reset is a reset for the backend", async () => {
  await using rig = new ProxyRig();
  const seen = Promise.withResolvers<unknown>();
  const backend = rig.serve(async (conn) => {
    await writeAll(conn, encode("unread"));
    await readToEnd(conn).then(() => seen.resolve("an end"), seen.resolve);
  });
  const port = serveAt(rig, [backend]);
  const conn = await rig.connect(KEY);
  await conn.read(new Uint8Array(1));
  denoStream(conn).reset();
  assert(await seen.promise instanceof Deno.errors.ConnectionReset);
  await rig.proxy.stop(0);
  const [one] = port.balancer.backends;
  assertEquals(one, undefined);
});

Deno.test("a dead backend costs its client one try and others nothing", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = [deadPort(), rig.echo()];
  rig.dialer.hang(`127.0.0.1:${dead}`);
  serveAt(rig, [dead, live]);
  const stuck = await rig.connect(KEY);
  await rig.dialer.dialed(1);
  const lucky = await rig.connect(KEY);
  assertEquals(await ask(lucky, "hello"), "hello");
  assertEquals(rig.dialer.dials.map(({ key }) => key), [
    `127.0.0.1:${dead}`,
    `127.0.0.1:${live}`,
  ]);
  lucky.close();
  stuck.close();
});

Deno.test("the next backend is tried when one refuses, each once at most", async () => {
  await using rig = new ProxyRig();
  const [one, two, three] = [deadPort(), deadPort(), rig.echo()];
  for (const port of [one, two]) rig.dialer.refuse(`127.0.0.1:${port}`);
  const port = serveAt(rig, [one, two, three]);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "hello"), "hello");
  conn.close();
  rig.dialer.refuse(`127.0.0.1:${three}`);
  await assertReset(rig.connect(KEY));
  const dialed = rig.dialer.dials.map(({ key }) => Number(key.split(":")[1]));
  assertEquals(dialed, [one, two, three, one, two, three]);
  assertEquals(port.counts.retries, 4);
  assertEquals(port.counts.refused, 1);
  assertMatch(port.lastError!, /connection refused/);
});

Deno.test("each try may take longer, and the last one longest", async () => {
  await using rig = new ProxyRig();
  const ports = Array.from({ length: 6 }, deadPort);
  for (const port of ports) rig.dialer.late(`127.0.0.1:${port}`);
  const timeouts = () => rig.dialer.dials.map(({ timeoutMs }) => timeoutMs);
  serveAt(rig, ports);
  await assertReset(rig.connect(KEY));
  assertEquals(timeouts(), [250, 500, 1_000, 2_000], "no more tries than that");
  serveAt(rig, ports.slice(0, 2));
  rig.dialer.dials.length = 0;
  await assertReset(rig.connect(KEY));
  assertEquals(timeouts(), [250, 2_000]);
  serveAt(rig, ports.slice(0, 2), { policy: { dialTimeoutMs: 700 } });
  rig.dialer.dials.length = 0;
  await assertReset(rig.connect(KEY));
  assertEquals(timeouts(), [700, 700]);
});

Deno.test("refusals do not shorten what the others are given, nor go on for ever", async () => {
  await using rig = new ProxyRig();
  const ports = Array.from({ length: 6 }, deadPort);
  for (const port of ports) rig.dialer.refuse(`127.0.0.1:${port}`);
  rig.dialer.late(`127.0.0.1:${ports[3]}`);
  const timeouts = () => rig.dialer.dials.map(({ timeoutMs }) => timeoutMs);
  serveAt(rig, ports);
  await assertReset(rig.connect(KEY));
  assertEquals(timeouts(), [250, 250, 250, 250, 500, 2_000]);
  // Far away: each refusal takes a second.
  for (const port of ports) {
    rig.dialer.answers.set(`127.0.0.1:${port}`, () => {
      rig.timers.advance(1_000);
      return Promise.reject(new EndpointDialError("target", "refused"));
    });
  }
  rig.dialer.dials.length = 0;
  await assertReset(rig.connect(KEY));
  assertEquals(rig.dialer.dials.length, 4, "as long as four late ones take");
});

Deno.test("a client asks only so many of thousands that are dead", async () => {
  await using rig = new ProxyRig();
  const ports = Array.from({ length: 200 }, (_, index) => 1 + index);
  for (const port of ports) rig.dialer.refuse(`127.0.0.1:${port}`);
  serveAt(rig, ports);
  const pause = setInterval(() => rig.timers.advance(0), 1);
  await assertReset(rig.connect(KEY));
  clearInterval(pause);
  assertEquals(rig.dialer.dials.length, BACKENDS_TRIED_MAX);
});

Deno.test("a client with affinity is sent on from a dead backend, and stays there", async () => {
  await using rig = new ProxyRig();
  const [one, two, three] = [rig.echo("1:"), rig.echo("2:"), rig.echo("3:")];
  serveAt(rig, [one, two, three], {
    affinity: { kind: "client-ip", ttlMs: 60_000 },
  });
  const once = async () => {
    const conn = await rig.connect(KEY);
    const answer = await ask(conn, "x");
    conn.close();
    return answer;
  };
  assertEquals([await once(), await once()], ["1:x", "1:x"]);
  rig.dialer.refuse(`127.0.0.1:${one}`);
  assertEquals([await once(), await once()], ["2:x", "2:x"]);
  rig.dialer.answers.clear();
  assertEquals(await once(), "2:x");
});

Deno.test("after three failures a backend is not asked for ten seconds", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = [deadPort(), rig.echo()];
  rig.dialer.refuse(`127.0.0.1:${dead}`);
  const port = serveAt(rig, [dead, live]);
  const dialsOf = async (clients: number) => {
    rig.dialer.dials.length = 0;
    for (let i = 0; i < clients; i++) {
      const conn = await rig.connect(KEY);
      assertEquals(await ask(conn, "x"), "x");
      conn.close();
    }
    return rig.dialer.dials
      .filter(({ key }) => key === `127.0.0.1:${dead}`).length;
  };
  assertEquals(await dialsOf(10), EJECTION_FAILURES);
  assertEquals(port.counts.ejections, 1);
  assertEquals(rig.log.matching(/is left out for a while/).length, 1);
  assertEquals(await dialsOf(4), 0);
  rig.timers.advance(EJECTION_MS);
  assertEquals(await dialsOf(4), 1);
});

Deno.test("what this machine lacks is not held against a backend", async () => {
  await using rig = new ProxyRig();
  const one = deadPort();
  rig.dialer.refuse(`127.0.0.1:${one}`, "here");
  const port = serveAt(rig, [one]);
  for (let i = 0; i <= EJECTION_FAILURES; i++) {
    await assertReset(rig.connect(KEY));
  }
  const [backend] = port.balancer.backends;
  assertEquals([backend!.failuresTotal, port.counts.ejections], [0, 0]);
});

Deno.test("without endpoints clients are reset", async () => {
  await using rig = new ProxyRig();
  const port = serveAt(rig, []);
  await assertReset(rig.connect(KEY));
  assertEquals(port.lastError, "no endpoint is ready");
  assertEquals(port.counts, {
    ...port.counts,
    accepted: 1,
    refused: 1,
    retries: 0,
  });
});

Deno.test("what runs on a removed service ends at its deadline", async () => {
  await using rig = new ProxyRig({ drainMs: 5_000 });
  serveAt(rig, [rig.echo()]);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  rig.sink.set({ services: [] });
  assertEquals(rig.proxy.drainingLoad, 1);
  rig.timers.advance(4_999);
  assertEquals(await ask(conn, "y"), "y");
  rig.timers.advance(1);
  await assertReset(conn);
  await rig.proxy.stop(5_000);
  assertEquals(rig.proxy.drainingLoad, 0);
});

Deno.test("no deadline is left when what runs has ended before it", async () => {
  await using rig = new ProxyRig({ drainMs: 5_000 });
  serveAt(rig, [rig.echo()]);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  const before = rig.timers.pendingCount;
  rig.sink.set({ services: [] });
  assertEquals(rig.timers.pendingCount, before + 1);
  conn.close();
  await rig.proxy.stop(60_000);
  assertEquals(rig.timers.pendingCount, before);
});

Deno.test("a service may say how long that is", async () => {
  await using rig = new ProxyRig({ drainMs: 5_000 });
  serveAt(rig, [rig.echo()], { policy: { drainMs: 0 } });
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  rig.sink.set({ services: [] });
  await assertReset(conn);
});

Deno.test("a client that still waits for a backend goes with its service", async () => {
  await using rig = new ProxyRig();
  const dead = deadPort();
  rig.dialer.hang(`127.0.0.1:${dead}`);
  const port = serveAt(rig, [dead]);
  const conn = await rig.connect(KEY);
  await rig.dialer.dialed(1);
  const [backend] = port.balancer.backends;
  assertEquals(backend!.connections, 1, "the dial counts");
  await rig.proxy.stop(0);
  await assertReset(conn);
  assertEquals(backend!.connections, 0);
});

Deno.test("connections of a port are limited", async () => {
  await using rig = new ProxyRig({
    portProxies: { tcp: (port, context) => new TcpPortProxy(port, context, 2) },
  });
  const port = serveAt(rig, [rig.echo()]);
  const [one, two] = [await rig.connect(KEY), await rig.connect(KEY)];
  assertEquals([await ask(one, "1"), await ask(two, "2")], ["1", "2"]);
  await assertReset(rig.connect(KEY));
  assertEquals(port.lastError, "more than 2 connections");
  one.close();
  two.close();
});

Deno.test("a client that waits for a backend is listed, counted, and ended by who may", async () => {
  await using rig = new ProxyRig();
  const { conduits } = rig;
  const dead = deadPort();
  rig.dialer.hang(`127.0.0.1:${dead}`);
  serveAt(rig, [dead]);
  const conn = await rig.connect(KEY);
  await rig.dialer.dialed(1);
  const [dial] = conduits.dials;
  assertEquals(dial!.facts.service, KEY);
  assert(conduits.kill(dial!.id, "ended by alice"));
  await assertReset(conn);
  assertEquals(conduits.dials.size, 0);
  rig.dialer.refuse(`127.0.0.1:${dead}`);
  await assertReset(rig.connect(KEY));
  assertEquals([conduits.dials.size, conduits.totals().failedDials], [0, 1]);
  serveAt(rig, [rig.echo()]);
  const echo = await rig.connect(KEY);
  await writeAll(echo, encode("x"));
  assertEquals(await echo.read(new Uint8Array(1)), 1);
  assertEquals([conduits.dials.size, conduits.size], [0, 1]);
  const [live] = conduits.all();
  conduits.kill(live!.id, "ended by alice");
  await assertReset(echo);
  assertEquals(conduits.size, 0);
});

Deno.test("who is queued at the port when it is closed is served before the end", async () => {
  await using rig = new ProxyRig();
  const backend = rig.serve(async (conn) => {
    await writeAll(conn, encode("served"));
    conn.close();
  });
  serveAt(rig, [backend]);
  const address = rig.proxy.served.get(KEY)!.listener.bound!;
  // The kernel accepts them in this turn; nobody here does before the stop.
  const coming = [1, 2, 3].map(() => Deno.connect(address));
  await Promise.all(coming.slice(0, 1));
  const stopped = rig.proxy.stop(60_000);
  const answers = await Promise.all(
    coming.map(async (one) => decode(await readToEnd(await one))),
  );
  assertEquals(answers, ["served", "served", "served"]);
  for (const one of coming) (await one).close();
  await stopped;
  await assertRejects(() => Deno.connect(address), Error);
});

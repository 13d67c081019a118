/**
 * UDP: kube-proxy's own tests by the names that they have there
 * (`pkg/proxy/userspace/proxier_test.go`), and what users missed in it for ten
 * years, with the numbers of what they wrote.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Service } from "../../catalog/model.ts";
import { MemoryConduit } from "../../tests/support/memory_conduit.ts";
import { DatagramPeer } from "../../tests/support/datagrams.ts";
import {
  ask,
  endpoints,
  ProxyRig,
  service,
} from "../../tests/support/proxy_rig.ts";
import {
  GRACE_MS,
  REFUSED_PAUSE_MS,
  SHORT_PAUSE_MS,
  UdpSessions,
} from "./udp_sessions.ts";

const KEY = "default/echo";

const udp = (name: string, port: number) =>
  ({ name, port, protocol: "udp" }) as const;

const echo = (about: Partial<Omit<Service, "name">> = {}) =>
  service("echo", { ports: [udp("", 53)], ...about });

const at = (port: number) =>
  echo({ ports: [{ ...udp("", 53), listen: { port } }] });

/** Serves `echo` at `ports`. @returns Where. */
function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  about: Partial<Omit<Service, "name">> = {},
): Promise<number> {
  rig.sink.set({
    services: [echo(about)],
    endpoints: [endpoints("echo", ports)],
  });
  return rig.listening(KEY);
}

const move = (rig: ProxyRig, ports: readonly number[]) =>
  rig.sink.add({ endpoints: [endpoints("echo", ports)] });

const portOf = (rig: ProxyRig) => rig.proxy.served.get(KEY)!.port;
const loadOf = (rig: ProxyRig) => rig.proxy.served.get(KEY)!.proxy.load;

/** Turns of the event loop in which what is closed gets closed. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve));
}

/** A port where nobody is, over UDP or TCP. */
async function freePort(): Promise<number> {
  for (;;) {
    await using peer = await DatagramPeer.open();
    const { port } = peer;
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** Passes when nobody has the port. */
async function assertClosed(port: number): Promise<void> {
  for (;;) {
    try {
      return await (await DatagramPeer.open(port))[Symbol.asyncDispose]();
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

Deno.test("TestUDPProxy", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await client.ask("hello", port), "hello");
});

Deno.test("TestUDPProxyTimeout", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await client.ask("hello", port), "hello");
  assertEquals(loadOf(rig), 1);
  rig.timers.advance(59_000);
  assertEquals(loadOf(rig), 1);
  assertEquals(await client.ask("again", port), "again");
  rig.timers.advance(59_000);
  assertEquals(await client.ask("again", port), "again");
  assertEquals(portOf(rig).counts.accepted, 1);
  rig.timers.advance(66_000);
  await until(() => loadOf(rig) === 0);
});

Deno.test("TestMultiPortProxy", async () => {
  await using rig = new ProxyRig();
  await using p = await DatagramPeer.echo("p:");
  await using q = await DatagramPeer.echo("q:");
  await using client = await DatagramPeer.open();
  rig.sink.set({
    services: [echo({ ports: [udp("p", 53), udp("q", 54)] })],
    endpoints: [endpoints("echo", [{ p: p.port, q: q.port }])],
  });
  const ports = [
    await rig.listening(`${KEY}:p`),
    await rig.listening(`${KEY}:q`),
  ];
  assertEquals(await client.ask("x", ports[0]!), "p:x");
  assertEquals(await client.ask("x", ports[1]!), "q:x");
});

Deno.test("TestUDPProxyStop", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await client.ask("hello", port), "hello");
  await rig.proxy.stop(1_000);
  await assertClosed(port);
  assertEquals(rig.proxy.served.size, 0);
});

Deno.test("TestUDPProxyUpdateDelete", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await client.ask("hello", port), "hello");
  const { proxy } = rig.proxy.served.get(KEY)!;
  rig.sink.set({ services: [] });
  await assertClosed(port);
  await until(() => proxy.load === 0);
});

Deno.test("TestUDPProxyUpdateDeleteUpdate", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await freePort();
  rig.sink.set({
    services: [at(port)],
    endpoints: [endpoints("echo", [backend.port])],
  });
  await rig.served(KEY, port);
  assertEquals(await client.ask("hello", port), "hello");
  rig.sink.remove({ services: [KEY] });
  rig.sink.add({ services: [at(port)] });
  await rig.served(KEY, port);
  assertEquals(await client.ask("hello", port), "hello");
});

Deno.test("TestUDPProxyUpdatePort", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const second = await freePort();
  const first = await serveAt(rig, [backend.port]);
  assertEquals(await client.ask("hello", first), "hello");
  rig.sink.add({ services: [at(second)] });
  await rig.served(KEY, second);
  await assertClosed(first);
  assertEquals(await client.ask("hello", second), "hello");
  assertEquals(rig.proxy.served.size, 1);
});

Deno.test("a port that becomes UDP, or TCP again, is served as what it is", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await freePort();
  rig.sink.set({
    services: [
      echo({ ports: [{ ...udp("", 53), protocol: "tcp", listen: { port } }] }),
    ],
    endpoints: [endpoints("echo", [rig.echo()])],
  });
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "hello"), "hello");
  conn.close();
  rig.sink.set({
    services: [at(port)],
    endpoints: [endpoints("echo", [backend.port])],
  });
  await rig.served(KEY, port);
  assertEquals(await client.ask("hello", port), "hello");
});

Deno.test("each client has a session of its own, and gets its own answers", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using one = await DatagramPeer.open();
  await using two = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port, b.port]);
  for (let count = 0; count < 3; count++) {
    assertEquals(await one.ask("1", port), "a:1");
    assertEquals(await two.ask("2", port), "b:2");
  }
  const [first] = portOf(rig).balancer.backends;
  assertEquals(
    [first!.connections, first!.octetsSent, first!.octetsReceived],
    [1, 3, 9],
  );
  assertEquals(portOf(rig).counts.octetsToClients, 18);
});

Deno.test("datagrams of 65,507 octets go and come whole, an empty one too", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.open();
  backend.answer = ({ octets }) => octets;
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  for (const length of [65_507, 0, 4_097]) {
    const sent = new Uint8Array(length).map((_, index) => index % 251);
    client.send(sent, port);
    const { octets } = await client.next();
    assertEquals(octets.length, length);
    assert(octets.every((octet, index) => octet === index % 251));
  }
});

Deno.test("a session leaves an endpoint that goes at once (#19029, #125467)", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  assertEquals(await client.ask("1", port), "a:1");
  move(rig, [b.port]);
  // No time has passed.
  assertEquals(await client.ask("2", port), "b:2");
  assertEquals(a.count, 1);
  assertEquals(portOf(rig).counts.moved, 1);
});

Deno.test("an endpoint that stays keeps its sessions, whatever else changes", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  assertEquals(await client.ask("1", port), "a:1");
  move(rig, [b.port, a.port]);
  move(rig, [a.port]);
  assertEquals(await client.ask("2", port), "a:2");
  assertEquals(portOf(rig).counts.accepted, 1);
});

Deno.test("an endpoint that terminates is left, if others are ready (cilium #37577)", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.echo("a:");
  await using b = await DatagramPeer.echo("b:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  assertEquals(await client.ask("1", port), "a:1");
  const list = endpoints("echo", [a.port, b.port]);
  const [first, second] = list.endpoints;
  const inState = (state: "serving" | "terminating") =>
    rig.sink.add({
      endpoints: [{ ...list, endpoints: [{ ...first!, state }, second!] }],
    });
  inState("serving");
  assertEquals(await client.ask("2", port), "b:2");
});

Deno.test("answers under way still arrive, for two seconds (#45976)", async () => {
  await using rig = new ProxyRig();
  await using slow = await DatagramPeer.open();
  await using quick = await DatagramPeer.echo("quick:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [slow.port]);
  client.send("query", port);
  const query = await slow.next();
  move(rig, [quick.port]);
  rig.timers.advance(GRACE_MS - 1);
  assertEquals(await client.ask("next", port), "quick:next");
  slow.send("late", query.from.port);
  assertEquals(await client.nextText(), "late");
  rig.timers.advance(1);
  await until(() => loadOf(rig) === 1);
  slow.send("too late", query.from.port);
  assertEquals(await client.ask("again", port), "quick:again");
});

Deno.test("a session that leaves is not kept by answers, nor keeps others", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.open();
  await using other = await DatagramPeer.echo("other:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  client.send("subscribe", port);
  const { from } = await backend.next();
  move(rig, [other.port]);
  assertEquals(await client.ask("hello", port), "other:hello");
  backend.send("news", from.port);
  assertEquals(await client.nextText(), "news");
  rig.timers.advance(GRACE_MS);
  await until(() => loadOf(rig) === 1);
  rig.timers.advance(70_000);
  await until(() => loadOf(rig) === 0);
});

Deno.test("without endpoints there are no sessions, and later none is stuck (#48370)", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, []);
  client.send("lost", port);
  await until(() => portOf(rig).counts.refused === 1);
  assertEquals(loadOf(rig), 0);
  assertEquals(portOf(rig).lastError, "no endpoint is ready");
  move(rig, [backend.port]);
  assertEquals(await client.ask("found", port), "found");
  move(rig, []);
  client.send("lost", port);
  await until(() => portOf(rig).counts.datagramsDropped === 2);
});

Deno.test("who never pauses and never listens follows endpoints that flap (statsd)", async () => {
  await using rig = new ProxyRig();
  await using a = await DatagramPeer.open();
  await using b = await DatagramPeer.open();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [a.port]);
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      client.send("count:1|c", port);
      await new Promise((resolve) => setTimeout(resolve));
    }
  })();
  for (let flap = 0; flap < 10; flap++) {
    for (const [now, before] of [[a, b], [b, a]] as const) {
      move(rig, [now.port]);
      await now.next();
      const seen = before.count;
      const heard = now.count;
      await until(() => now.count >= heard + 3);
      // One may have been read by the time of the change.
      assert(before.count - seen <= 1, `${before.count - seen} went astray`);
      move(rig, []);
    }
  }
  isOver = true;
  await sending;
  rig.timers.advance(GRACE_MS);
  await until(() => loadOf(rig) === 0);
  assert(portOf(rig).counts.moved >= 20);
});

Deno.test("an endpoint that refuses is left for another, and then left out", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  const port = await serveAt(rig, [await freePort(), live.port]);
  for (let clients = 0; clients < 8; clients++) {
    await using client = await DatagramPeer.open();
    // What every resolver does: ask until there is an answer.
    let isAnswered = false;
    const answered = client.nextText().finally(() => isAnswered = true);
    await until(() => {
      client.send("ask", port);
      return isAnswered;
    });
    assertEquals(await answered, "live:ask");
  }
  await until(() => portOf(rig).counts.ejections === 1);
  assertMatch(portOf(rig).lastError!, /connection refused/);
  assertEquals(rig.log.matching(/is left out for a while/).length, 1);
});

Deno.test("a datagram that shows that an endpoint is dead goes to the next one", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [await freePort(), live.port]);
  const [dead] = portOf(rig).balancer.backends;
  client.send("1", port);
  await until(() => dead!.octetsSent === 1);
  assertEquals(await client.ask("2", port), "live:2");
});

Deno.test("only the endpoint may answer", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.open();
  await using stranger = await DatagramPeer.open();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  client.send("query", port);
  const { from } = await backend.next();
  stranger.send("forged", from.port);
  backend.send("true", from.port);
  assertEquals(await client.nextText(), "true");
});

Deno.test("the one that is silent for longest makes room at the limit", async () => {
  await using rig = new ProxyRig({
    portProxies: { udp: (port, context) => new UdpSessions(port, context, 2) },
  });
  await using backend = await DatagramPeer.echo();
  await using one = await DatagramPeer.open();
  await using two = await DatagramPeer.open();
  await using three = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  await one.ask("x", port);
  rig.timers.advance(10);
  await two.ask("x", port);
  rig.timers.advance(10);
  await one.ask("x", port);
  await three.ask("x", port);
  const { counts } = portOf(rig);
  assertEquals([counts.accepted, counts.crowdedOut], [3, 1]);
  await until(() => loadOf(rig) === 2);
  await one.ask("x", port);
  assertEquals(counts.accepted, 3, "the first was heard of after the second");
  await two.ask("x", port);
  assertEquals([counts.accepted, counts.crowdedOut], [4, 2]);
});

Deno.test("a service's own idle time holds, also when it changes", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  await client.ask("x", port);
  rig.sink.add({ services: [echo({ policy: { udpIdleMs: 1_000 } })] });
  rig.timers.advance(5_000);
  await until(() => loadOf(rig) === 0);
  await client.ask("x", port);
  rig.timers.advance(900);
  assertEquals(loadOf(rig), 1);
  rig.timers.advance(200);
  await until(() => loadOf(rig) === 0);
});

Deno.test("sessions have one timer together, and none without them", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  const port = await serveAt(rig, [backend.port]);
  const before = rig.timers.pendingCount;
  await using one = await DatagramPeer.open();
  await using two = await DatagramPeer.open();
  for (const client of [one, two, one, two]) await client.ask("x", port);
  assertEquals(rig.timers.pendingCount, before + 1);
  rig.timers.advance(70_000);
  await until(() => loadOf(rig) === 0);
  assertEquals(rig.timers.pendingCount, before);
});

Deno.test("what cannot be dialed is dropped for a second, then tried again", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  rig.reach.refuse(`127.0.0.1:${backend.port}`);
  const port = await serveAt(rig, [backend.port]);
  const { counts } = portOf(rig);
  client.send("1", port);
  await until(() => counts.refused === 1);
  client.send("2", port);
  await until(() => counts.datagramsDropped === 2);
  assertEquals(rig.reach.dials.length, 1);
  rig.reach.answers.clear();
  rig.timers.advance(REFUSED_PAUSE_MS);
  assertEquals(await client.ask("3", port), "3");
});

Deno.test("a machine that is short of something refuses, says so, and blames nobody", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  rig.reach.refuse(`127.0.0.1:${backend.port}`, "here");
  const port = await serveAt(rig, [backend.port]);
  const { counts, balancer } = portOf(rig);
  client.send("1", port);
  await until(() => counts.refused === 1);
  await until(() => loadOf(rig) === 0);
  rig.reach.answers.clear();
  client.send("2", port);
  await until(() => counts.refused === 2);
  assertEquals(rig.reach.dials.length, 1, "it was not even tried");
  rig.timers.advance(SHORT_PAUSE_MS);
  assertEquals(await client.ask("3", port), "3");
  assertEquals([...balancer.backends][0]!.failuresTotal, 0);
});

Deno.test("through the tunnel each session has a conduit, and waits for it", async () => {
  await using rig = new ProxyRig();
  await using client = await DatagramPeer.open();
  const dialed = Promise.withResolvers<MemoryConduit>();
  const [near, far] = MemoryConduit.pair({ datagrams: true });
  rig.reach.answers.set("127.0.0.1:9", () => dialed.promise);
  const heard: string[] = [];
  far.attach({
    onData(octets) {
      heard.push(new TextDecoder().decode(octets));
      far.consumed(octets.length);
      if (heard.length === 2) far.write(new TextEncoder().encode("both"));
    },
    onWritable() {},
    onEnd() {},
    onClose() {},
  });
  const port = await serveAt(rig, [9]);
  client.send("one", port);
  client.send("two", port);
  await rig.reach.dialed(1);
  dialed.resolve(near);
  assertEquals(await client.nextText(), "both");
  assertEquals(heard, ["one", "two"]);
  assertEquals(rig.reach.dials.length, 1);
});

Deno.test("what waits for an endpoint that goes is sent to another one", async () => {
  await using rig = new ProxyRig();
  await using live = await DatagramPeer.echo("live:");
  await using client = await DatagramPeer.open();
  rig.reach.hang("127.0.0.1:9");
  const port = await serveAt(rig, [9]);
  client.send("one", port);
  await rig.reach.dialed(1);
  move(rig, [live.port]);
  assertEquals(await client.nextText(), "live:one");
  await until(() => loadOf(rig) === 1);
});

Deno.test("a conduit that is lost ends its session, and the next datagram finds another", async () => {
  await using rig = new ProxyRig();
  await using client = await DatagramPeer.open();
  const conduits: MemoryConduit[] = [];
  rig.reach.answers.set("127.0.0.1:9", () => {
    const [near, far] = MemoryConduit.pair({ datagrams: true });
    far.attach({
      onData(octets) {
        far.consumed(octets.length);
        far.write(octets);
      },
      onWritable() {},
      onEnd() {},
      onClose() {},
    });
    conduits.push(far);
    return Promise.resolve(near);
  });
  const port = await serveAt(rig, [9]);
  assertEquals(await client.ask("one", port), "one");
  conduits[0]!.reset("the agent is gone", "lost");
  await until(() => loadOf(rig) === 0);
  assertEquals(await client.ask("two", port), "two");
  assertEquals(conduits.length, 2);
});

import { assert, assertEquals, assertMatch } from "@std/assert";
import {
  type DatagramEvents,
  openDatagramSocket,
} from "../../../net/datagram/datagram_socket.ts";
import { FIRST_CEILING_MS } from "../../../proto/sync/backoff.ts";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import { MemoryConduit } from "../../../tests/support/memory/memory_conduit.ts";
import { ProxyRig } from "../../../tests/support/rigs/proxy_rig.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  at,
  echo,
  KEY,
  loadOf,
  portOf,
  serveAt,
} from "../../../tests/support/peers/udp_echo.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";
import {
  SESSIONS_REFUSED_PAUSE_MS,
  SHORT_PAUSE_MS,
  UdpSessions,
} from "./udp_sessions.ts";

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
    [first!.connections, first!.bytesSent, first!.bytesReceived],
    [1, 3, 9],
  );
  assertEquals(portOf(rig).counts.bytesToClients, 18);
});

// kube-proxy calls it TestUDPProxyTimeout.
Deno.test("a session that both its ends leave silent for a minute is over", async () => {
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

Deno.test("each session has its lines in the log, and who finds nobody one", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo("a:");
  await using one = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await one.ask("1", port), "a:1");
  const { fields } = await rig.log.until(/^connection opened$/);
  assertEquals(fields["service"], KEY);
  assertEquals(fields["from"], `127.0.0.1:${one.port}`);
  assertEquals(fields["target"], `udp 127.0.0.1:${backend.port}`);
  rig.sink.set({ services: [], endpoints: [] });
  const ended = await rig.log.until(/^connection ended$/);
  const { bytesToTarget, bytesFromTarget } = ended.fields;
  assertEquals([bytesToTarget, bytesFromTarget], [1, 3]);
  rig.dialer.refuse("127.0.0.1:1");
  one.send(new Uint8Array(1), await serveAt(rig, [1]));
  const failed = await rig.log.until(/^connection failed: /);
  assertEquals([failed.level, failed.fields["service"]], ["event", KEY]);
});

Deno.test("sessions are listed while they look for a backend and have one, and ended by who may", async () => {
  await using rig = new ProxyRig();
  const { conduits } = rig;
  await using backend = await DatagramPeer.echo("a:");
  await using one = await DatagramPeer.open();
  rig.dialer.hang("127.0.0.1:1");
  one.send(new Uint8Array(1), await serveAt(rig, [1]));
  await rig.dialer.dialed(1);
  const [dial] = conduits.dials;
  assertEquals(dial!.facts.service, KEY);
  assert(conduits.kill(dial!.id, "ended by alice"));
  await until(() => conduits.dials.size === 0);
  const port = await serveAt(rig, [backend.port]);
  assertEquals(await one.ask("1", port), "a:1");
  const [live] = conduits.all();
  assertEquals(live!.facts.target?.protocol, "udp");
  assertEquals([live!.sentBytes, live!.receivedBytes], [1, 3]);
  assert(conduits.kill(live!.id, "ended by alice"));
  await until(() => conduits.size === 0);
  assertEquals(loadOf(rig), 0);
  assertEquals(
    await one.ask("2", port),
    "a:2",
    "the next datagram begins anew",
  );
});

Deno.test("datagrams of 65,507 bytes go and come whole, an empty one too", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.open();
  backend.answer = ({ bytes }) => bytes;
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  for (const length of [65_507, 0, 4_097]) {
    const sent = new Uint8Array(length).map((_, index) => index % 251);
    client.send(sent, port);
    const { bytes } = await client.next();
    assertEquals(bytes.length, length);
    assert(bytes.every((byte, index) => byte === index % 251));
  }
});

Deno.test("on all addresses a client is answered from the one that it asked", async () => {
  await using rig = new ProxyRig({
    addresses: { kind: "anywhere", host: "0.0.0.0" },
  });
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  for (let round = 0; round < 2; round++) {
    for (const host of ["127.0.0.5", "127.0.0.6"]) {
      client.send(host, port, host);
      const { bytes, from } = await client.next();
      assertEquals([new TextDecoder().decode(bytes), from.hostname], [
        host,
        host,
      ]);
    }
  }
  assertEquals(portOf(rig).counts.accepted, 2);
});

Deno.test("a socket that fails is opened again, later each time, and it is said", async () => {
  const opened: DatagramEvents[] = [];
  const openSocket: typeof openDatagramSocket = async (at, limits) => {
    const socket = await openDatagramSocket(at, limits);
    const { listen } = socket;
    socket.listen = (events) => {
      opened.push(events);
      listen.call(socket, events);
    };
    return socket;
  };
  await using rig = new ProxyRig({
    portProxies: {
      udp: (port, context) =>
        new UdpSessions(port, context, undefined, openSocket),
    },
  });
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  const port = freePort();
  rig.serves(at(port), [backend.port]);
  await rig.served(KEY, port);
  const { listener } = rig.proxy.served.get(KEY)!;
  for (const waitMs of [FIRST_CEILING_MS / 2, FIRST_CEILING_MS * 0.75]) {
    assertEquals(await client.ask("hello", port), "hello");
    const said = rig.log.next(/is heard no more: network is down; opening/);
    opened.at(-1)!.onError(new Error("network is down"));
    await said;
    assertEquals(listener.address, undefined);
    assertMatch(listener.problem!, /network is down/);
    await until(() => loadOf(rig) === 0);
    rig.timers.advance(waitMs - 1);
    assertEquals(listener.address, undefined);
    rig.timers.advance(1);
    await rig.served(KEY, port);
  }
  assertEquals(listener.problem, undefined);
  assertEquals(await client.ask("again", port), "again");
  assertEquals(opened.length, 3);
});

Deno.test("only the endpoint may answer", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.open();
  await using outsider = await DatagramPeer.open();
  await using client = await DatagramPeer.open();
  const port = await serveAt(rig, [backend.port]);
  client.send("query", port);
  const { from } = await backend.next();
  outsider.send("forged", from.port);
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
  rig.dialer.refuse(`127.0.0.1:${backend.port}`);
  const port = await serveAt(rig, [backend.port]);
  const { counts } = portOf(rig);
  client.send("1", port);
  await until(() => counts.refused === 1);
  client.send("2", port);
  await until(() => counts.datagramsDropped === 2);
  assertEquals(rig.dialer.dials.length, 1);
  rig.dialer.answers.clear();
  rig.timers.advance(SESSIONS_REFUSED_PAUSE_MS);
  assertEquals(await client.ask("3", port), "3");
});

Deno.test("a machine that is short of something refuses, says so, and blames nobody", async () => {
  await using rig = new ProxyRig();
  await using backend = await DatagramPeer.echo();
  await using client = await DatagramPeer.open();
  rig.dialer.refuse(`127.0.0.1:${backend.port}`, "here");
  const port = await serveAt(rig, [backend.port]);
  const { counts, balancer } = portOf(rig);
  client.send("1", port);
  await until(() => counts.refused === 1);
  await until(() => loadOf(rig) === 0);
  rig.dialer.answers.clear();
  client.send("2", port);
  await until(() => counts.refused === 2);
  assertEquals(rig.dialer.dials.length, 1, "it was not even tried");
  rig.timers.advance(SHORT_PAUSE_MS);
  assertEquals(await client.ask("3", port), "3");
  assertEquals([...balancer.backends][0]!.failuresTotal, 0);
});

Deno.test("through the tunnel each session has a conduit, and waits for it", async () => {
  await using rig = new ProxyRig();
  await using client = await DatagramPeer.open();
  const dialed = Promise.withResolvers<MemoryConduit>();
  const [near, far] = MemoryConduit.pair({ datagrams: true });
  rig.dialer.answers.set("127.0.0.1:9", () => dialed.promise);
  const received: string[] = [];
  far.attach({
    onData(bytes) {
      received.push(new TextDecoder().decode(bytes));
      far.consumed(bytes.length);
      if (received.length === 2) far.write(new TextEncoder().encode("both"));
    },
    onWritable() {},
    onEnd() {},
    onClose() {},
  });
  const port = await serveAt(rig, [9]);
  client.send("one", port);
  client.send("two", port);
  await rig.dialer.dialed(1);
  dialed.resolve(near);
  assertEquals(await client.nextText(), "both");
  assertEquals(received, ["one", "two"]);
  assertEquals(rig.dialer.dials.length, 1);
});

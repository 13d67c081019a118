/**
 * UDP: kube-proxy's own tests by the names that they have there
 * (`pkg/proxy/userspace/proxier_test.go`).
 */

import { assertEquals } from "@std/assert";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import {
  ask,
  endpoints,
  ProxyRig,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  assertClosed,
  at,
  echo,
  KEY,
  loadOf,
  portOf,
  serveAt,
  udp,
} from "../../../tests/support/peers/udp_echo.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";

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
  rig.serves(echo({ ports: [udp("p", 53), udp("q", 54)] }), [{
    p: p.port,
    q: q.port,
  }]);
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
  const port = freePort();
  rig.serves(at(port), [backend.port]);
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
  const second = freePort();
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
  const port = freePort();
  rig.sink.set({
    services: [
      echo({ ports: [{ ...udp("", 53), protocol: "tcp", listen: { port } }] }),
    ],
    endpoints: [endpoints("echo", [rig.echo()])],
  });
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "hello"), "hello");
  conn.close();
  rig.serves(at(port), [backend.port]);
  await rig.served(KEY, port);
  assertEquals(await client.ask("hello", port), "hello");
});

/**
 * Ports of services as they change: what users missed in kube-proxy's proxier.
 * Whatever sources say in whatever order is `proxy_model_test.ts`.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type {
  BoundListener,
  ListenAddress,
} from "../../../net/listen/listeners.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { nextTurn } from "../../../tests/support/watch/event_loop.ts";
import { LocalAddressBook } from "../addresses/local_address.ts";
import type { PortProxy } from "../listeners/proxied_port.ts";
import { BIND_RETRY_MS_MAX } from "../listeners/service_listener.ts";

const tcp = (name: string, port: number) =>
  ({ name, port, protocol: "tcp" }) as const;

/** A service that wants to be served at `port`. */
const at = (name: string, port: number) =>
  service(name, {
    ports: [{ ...tcp("", 80), listen: { port } }],
  });

async function assertServes(rig: ProxyRig, key: string, text = "hello") {
  const conn = await rig.connect(key);
  assertEquals(await ask(conn, text), text);
  conn.close();
}

async function assertClosed(port: number) {
  // The platform closes a listener in the turn after.
  await nextTurn();
  await assertRejects(
    () => Deno.connect({ hostname: "127.0.0.1", port }),
    Deno.errors.ConnectionRefused,
  );
}

Deno.test("TestProxyUpdatePublicIPs", async () => {
  await using rig = new ProxyRig();
  const port = deadPort();
  const on = (host: string) =>
    service("echo", { ports: [{ ...tcp("", 80), listen: { host, port } }] });
  rig.serves(on("127.0.0.2"), [rig.echo()]);
  await assertClosed(port);
  (await Deno.connect({ hostname: "127.0.0.2", port })).close();
  rig.sink.add({ services: [on("127.0.0.1")] });
  await assertServes(rig, "default/echo");
});

Deno.test("endpoints that change leave the port and its connections alone", async () => {
  await using rig = new ProxyRig();
  const [one, other] = [rig.echo("1:"), rig.echo("2:")];
  rig.serves(service("echo"), [one]);
  const port = rig.portOf("default/echo");
  const conn = await rig.connect("default/echo");
  assertEquals(await ask(conn, "x"), "1:x");
  rig.sink.add({ endpoints: [endpoints("echo", [other])] });
  assertEquals(rig.portOf("default/echo"), port);
  rig.timers.advance(3_600_000);
  assertEquals(await ask(conn, "y"), "1:y", "it may finish what it began");
  const next = await rig.connect("default/echo");
  assertEquals(await ask(next, "z"), "2:z");
  conn.close();
  next.close();
});

Deno.test("connections outlive a change of the port", async () => {
  await using rig = new ProxyRig();
  rig.serves(at("echo", deadPort()), [rig.echo()]);
  const conn = await rig.connect("default/echo");
  assertEquals(await ask(conn, "x"), "x");
  rig.sink.add({ services: [at("echo", deadPort())] });
  assertEquals(await ask(conn, "y"), "y");
  conn.close();
});

Deno.test("a port that somebody else has is tried until it is free", async () => {
  await using rig = new ProxyRig();
  const [busy, before] = [
    Deno.listen({ hostname: "127.0.0.1", port: 0 }),
    deadPort(),
  ];
  const { port } = busy.addr;
  rig.serves(at("echo", before), [rig.echo()]);
  const { listener } = rig.proxy.served.get("default/echo")!;
  rig.sink.add({ services: [at("echo", port)] });
  assertMatch(listener.problem!, /something listens there already/);
  await assertServes(rig, "default/echo");
  assertEquals(rig.portOf("default/echo"), before, "until the new one is had");
  rig.timers.advance(BIND_RETRY_MS_MAX);
  assertEquals(rig.log.matching(/something listens/).length, 1, "said once");
  busy.close();
  rig.timers.advance(BIND_RETRY_MS_MAX);
  assertEquals(listener.problem, undefined);
  assertEquals(rig.portOf("default/echo"), port);
  await assertServes(rig, "default/echo");
  await assertClosed(before);
});

Deno.test("of two services that want one port the first has it, and the log says so", async () => {
  await using rig = new ProxyRig();
  const port = deadPort();
  rig.sink.set({ services: [at("a", port), at("b", port)] });
  assertEquals(rig.portOf("default/a"), port);
  assertMatch(
    rig.proxy.served.get("default/b")!.listener.problem!,
    /default\/a is served there/,
  );
  rig.sink.add({ services: [at("a", port), at("b", port)] });
  rig.sink.remove({ services: ["default/a"] });
  rig.timers.advance(BIND_RETRY_MS_MAX);
  await rig.served("default/b", port);
});

Deno.test("two services may swap their ports", async () => {
  await using rig = new ProxyRig();
  const [one, other] = [deadPort(), deadPort()];
  rig.sink.set({
    services: [at("a", one), at("b", other)],
    endpoints: [
      endpoints("a", [rig.echo("a:")]),
      endpoints("b", [rig.echo("b:")]),
    ],
  });
  rig.sink.add({ services: [at("a", other), at("b", one)] });
  await rig.served("default/a", other);
  await rig.served("default/b", one);
  assertEquals(rig.log.matching(/Cannot listen/), []);
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: one });
  assertEquals(await ask(conn, "x"), "b:x");
  conn.close();
});

/** Says over which protocol it was opened, and where. */
function recordingProxies() {
  const open = new Set<string>();
  const left: string[][] = [];
  const create = (protocol: string) => (): PortProxy => ({
    load: 0,
    open({ hostname, port }: ListenAddress): BoundListener {
      const address = `${protocol} ${hostname}:${port}`;
      assert(!open.has(address), `${address} is open already`);
      open.add(address);
      return { address, port, close: () => void open.delete(address) };
    },
    left: (backends) => void left.push(backends.map(({ key }) => key)),
    drain: () => Promise.resolve(),
  });
  return {
    open,
    left,
    portProxies: { tcp: create("tcp"), udp: create("udp") },
  };
}

Deno.test("a port may change its protocol, and others notice nothing", async () => {
  const { open, portProxies } = recordingProxies();
  await using rig = new ProxyRig({ portProxies });
  const dns = (protocol: "tcp" | "udp") =>
    service("dns", {
      ports: [
        { name: "dns", port: 53, protocol, listen: { port: 5_300 } },
        { name: "web", port: 80, protocol: "tcp", listen: { port: 8_000 } },
      ],
    });
  rig.sink.set({ services: [dns("tcp")] });
  assertEquals([...open], ["tcp 127.0.0.1:5300", "tcp 127.0.0.1:8000"]);
  const { balancer } = rig.proxy.served.get("default/dns:dns")!.port;
  rig.sink.add({ services: [dns("udp")] });
  assertEquals([...open], ["tcp 127.0.0.1:8000", "udp 127.0.0.1:5300"]);
  assertEquals(
    rig.proxy.served.get("default/dns:dns")!.port.balancer,
    balancer,
  );
});

Deno.test("whoever serves a port is notified of endpoints that are gone", async () => {
  const { left, portProxies } = recordingProxies();
  await using rig = new ProxyRig({ portProxies });
  rig.serves(service("a"), [1, 2, 3]);
  assertEquals(left, []);
  rig.sink.add({ endpoints: [endpoints("a", [2, 4])] });
  assertEquals(left.splice(0), [["127.0.0.1:1", "127.0.0.1:3"]]);
  rig.sink.remove({ endpoints: ["default/a"] });
  assertEquals(left.splice(0), [["127.0.0.1:2", "127.0.0.1:4"]]);
  rig.sink.add({ endpoints: [endpoints("a", [2])] });
  rig.sink.remove({ services: ["default/a"] });
  assertEquals(left, [["127.0.0.1:2"]]);
});

Deno.test("one number may be served over both protocols", async () => {
  const { open, portProxies } = recordingProxies();
  await using rig = new ProxyRig({ portProxies });
  const port = (protocol: "tcp" | "udp") => ({
    name: protocol,
    port: 53,
    protocol,
    listen: { port: 5_300 },
  });
  rig.sink.set({
    services: [service("dns", { ports: [port("tcp"), port("udp")] })],
  });
  assertEquals([...open], ["tcp 127.0.0.1:5300", "udp 127.0.0.1:5300"]);
  rig.sink.set({ services: [service("dns", { ports: [port("udp")] })] });
  assertEquals([...open], ["udp 127.0.0.1:5300"]);
});

Deno.test("ports that name no number get the same one after every start", async () => {
  const addresses = {
    kind: "ports",
    host: "127.0.0.1",
    first: 20_000,
    last: 29_999,
  } as const;
  const names = Array.from({ length: 40 }, (_, index) => `service-${index}`);
  const placed = (order: readonly string[]) => {
    const { open, portProxies } = recordingProxies();
    const rig = new ProxyRig({ portProxies, addresses });
    rig.sink.set({ services: order.map((name) => service(name)) });
    return { rig, open: [...open].sort() };
  };
  const one = placed(names);
  const other = placed(names);
  assertEquals(one.open, other.open);
  assertEquals(new Set(one.open).size, names.length, "each has its own");
  await one.rig.proxy.stop(0);
  await other.rig.proxy.stop(0);
});

Deno.test("a range that is full is said, and served again when there is room", async () => {
  const { open, portProxies } = recordingProxies();
  await using rig = new ProxyRig({
    portProxies,
    addresses: { kind: "ports", host: "127.0.0.1", first: 7_000, last: 7_001 },
  });
  rig.sink.set({ services: [service("a"), service("b")] });
  rig.sink.add({ services: [service("c")] });
  assertEquals([...open].sort(), [
    "tcp 127.0.0.1:7000",
    "tcp 127.0.0.1:7001",
  ]);
  assertMatch(
    rig.proxy.served.get("default/c")!.problem!,
    /no address is left/,
  );
  rig.sink.remove({ services: ["default/a"] });
  rig.sink.add({ endpoints: [endpoints("c", [1])] });
  assertEquals(open.size, 2);
  assertEquals(rig.proxy.served.get("default/c")!.problem, undefined);
});

Deno.test("a virtual address is one per service, and keeps its ports", () => {
  const range = { first: 0x7f64_0000, count: 65_536 };
  const book = new LocalAddressBook({ kind: "virtual-ips", range });
  const place = (name: string, port: number, portName = "") =>
    book.place({
      key: `default/${name}:${portName}`,
      service: `default/${name}`,
      servicePort: tcp(portName, port),
    })!;
  const web = place("web", 80, "http");
  assertMatch(web.hostname, /^127\.100\.[0-9]+\.[0-9]+$/);
  assertEquals(place("web", 443, "https").hostname, web.hostname);
  assertEquals(place("web", 443, "https").port, 443);
  assert(place("db", 80).hostname !== web.hostname);
});

Deno.test("an address is another's when the last port of its service is gone", () => {
  // .1 and .2 are to be had, and nothing else.
  const range = { first: 0x7f64_0001, count: 2 };
  const book = new LocalAddressBook({ kind: "virtual-ips", range });
  const port = (name: string, portName = "") => ({
    key: `${name}:${portName}`,
    service: name,
    servicePort: tcp(portName, 80),
  });
  const first = book.place(port("a", "p"))!;
  book.place(port("a", "q"));
  book.release(port("a", "p"));
  const second = book.place(port("b"))!;
  assert(second.hostname !== first.hostname);
  assertEquals(book.place(port("c")), undefined);
  book.release(port("a", "q"));
  assertEquals(book.place(port("c"))!.hostname, first.hostname);
});

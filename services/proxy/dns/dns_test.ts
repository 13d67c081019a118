import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
// @ts-types="./dns_packet.d.ts"
import packet from "dns-packet";
import { listenTcp } from "../../../net/listen/listeners.ts";
import { ListenError } from "../../../net/bind/listen_error.ts";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../../tests/support/memory/prng.ts";
import {
  deadPort,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { readToEnd, writeAll } from "../../../tests/support/peers/sockets.ts";
import {
  DNS_DATAGRAM_BYTES_MAX,
  DnsResponder,
  QUESTION_BYTES_MAX,
  TTL_SECONDS,
} from "./dns.ts";
import { DNS_CONNECTIONS_MAX, listenDns, TCP_IDLE_MS } from "./dns_listener.ts";
import { type DnsAsker, DnsZone } from "./dns_zone.ts";

const tcp = (name: string, port: number, host?: string) =>
  ({
    name,
    port,
    protocol: "tcp",
    ...(host === undefined ? {} : { listen: { host, port: deadPort() } }),
  }) as const;
const udp = (name: string, port: number) =>
  ({ name, port, protocol: "udp" }) as const;

class Rig implements AsyncDisposable {
  readonly proxy = new ProxyRig();
  readonly dns = new DnsResponder(new DnsZone(this.proxy.proxy));

  constructor(...services: ReturnType<typeof service>[]) {
    this.proxy.sink.set({ services });
  }

  ask(name: string, type: string, about: Partial<packet.Packet> = {}) {
    return packet.decode(this.raw(name, type, about)!);
  }

  raw(name: string, type: string, about: Partial<packet.Packet> = {}) {
    return this.dns.answer(question(name, type, about), "udp");
  }

  portOf(key: string): number {
    return this.proxy.portOf(key);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.proxy[Symbol.asyncDispose]();
  }
}

function question(
  name: string,
  type: string,
  about: Partial<packet.Packet> = {},
): Uint8Array {
  return packet.encode({
    type: "query",
    id: 4_711,
    flags: 0x0100,
    questions: [{ name, type }],
    ...about,
  });
}

function options(udpPayloadSize: number, ednsVersion = 0): packet.OptAnswer {
  return {
    type: "OPT",
    name: ".",
    udpPayloadSize,
    ednsVersion,
    extendedRcode: 0,
    flags: 0,
    options: [],
  };
}

const dataOf = (answers: readonly packet.Answer[]) =>
  answers.flatMap((one) => "data" in one ? [one.data] : []);

const WEB = "web.default.svc.tunnel";

Deno.test("a service's name is its address, in any case, and comes back as asked", async () => {
  await using rig = new Rig(service("web"));
  const answer = rig.ask("wEb.Default.SVC.tunnel", "A");
  assertEquals(answer.id, 4_711);
  assertEquals([answer.rcode, answer.flag_aa, answer.flag_rd], [
    "NOERROR",
    true,
    true,
  ]);
  assertEquals(answer.questions[0]!.name, "wEb.Default.SVC.tunnel");
  const [one] = answer.answers;
  assert(one?.type === "A");
  assertEquals(one.name, "wEb.Default.SVC.tunnel");
  assertEquals([one.data, one.ttl], ["127.0.0.1", TTL_SECONDS]);
});

Deno.test("of who listens on an IPv6 address the AAAA is told", async () => {
  await using rig = new Rig(service("web", { ports: [tcp("", 80, "::1")] }));
  assertEquals(dataOf(rig.ask(WEB, "AAAA").answers), ["::1"]);
  assertEquals(rig.ask(WEB, "A").answers, []);
  assertEquals(dataOf(rig.ask(WEB, "ANY").answers)[0], "::1");
});

Deno.test("who listens everywhere is found on loopback", async () => {
  await using rig = new Rig(
    service("web", { ports: [tcp("", 80, "0.0.0.0")] }),
  );
  assertEquals(dataOf(rig.ask(WEB, "A").answers), ["127.0.0.1"]);
});

Deno.test("who is elsewhere is told the address that they asked, and no loopback", async () => {
  await using rig = new Rig(
    service("web", {
      ports: [
        tcp("all", 80, "0.0.0.0"),
        tcp("both", 81, "::"),
        tcp("own", 82, "127.0.0.5"),
      ],
    }),
  );
  const asked = (asker: DnsAsker, type = "A") =>
    dataOf(
      packet.decode(rig.dns.answer(question(WEB, type), "udp", asker)!).answers,
    );
  const far = { from: "10.9.0.2", asked: "10.9.0.1" };
  assertEquals(asked(far), ["10.9.0.1"]);
  assertEquals(asked(far, "AAAA"), []);
  const targets = asked(far, "SRV").map((data) =>
    (data as { target: string }).target
  );
  assertEquals(targets, [WEB, WEB], "not the one that is loopback");
  const far6 = { from: "fd00::2", asked: "fd00::1" };
  assertEquals(asked(far6), []);
  assertEquals(asked(far6, "AAAA"), ["fd00::1"]);
  const link = { from: "fe80::2", asked: "fe80::1%3" };
  assertEquals(asked(link, "AAAA"), []);
  for (
    const here of [
      { from: "127.0.0.1", asked: "127.0.0.1" },
      { from: "10.9.0.1", asked: "10.9.0.1" },
    ]
  ) {
    assertEquals(asked(here), ["127.0.0.1", "127.0.0.5"]);
    assertEquals(asked(here, "AAAA"), ["::1"]);
  }
});

Deno.test("over UDP and TCP it is known which address was asked, and the answer leaves from there", async () => {
  const seen: string[] = [];
  const listener = await listenDns({ hostname: "0.0.0.0", port: 0 }, {
    answer(bytes, transport, asker) {
      seen.push(`${transport} ${asker?.from} ${asker?.asked}`);
      return bytes.slice();
    },
  }, { log: new RecordedLog(), timers: new FakeTimers() });
  await using client = await DatagramPeer.open();
  client.send("question", listener.port, "127.0.0.6");
  assertEquals((await client.next()).from.hostname, "127.0.0.6");
  const conn = await Deno.connect({
    hostname: "127.0.0.6",
    port: listener.port,
  });
  await writeAll(conn, Uint8Array.of(0, 2, 1, 1));
  await conn.read(new Uint8Array(4));
  conn.close();
  assertEquals(seen, [
    "udp 127.0.0.1 127.0.0.6",
    "tcp 127.0.0.1 127.0.0.6",
  ]);
  listener.close();
  await listener.finished;
});

Deno.test("SRV tells the local port of a port, by its name and protocol", async () => {
  await using rig = new Rig(
    service("web", { ports: [tcp("http", 80), tcp("v1.api", 81)] }),
  );
  const srv = (port: number) => ({ priority: 0, weight: 0, port, target: WEB });
  const http = rig.ask(`_http._tcp.${WEB}`, "SRV");
  assertEquals(dataOf(http.answers), [srv(rig.portOf("default/web:http"))]);
  assertEquals(dataOf(http.additionals), ["127.0.0.1"]);
  assertEquals(dataOf(rig.ask(`_v1.api._tcp.${WEB}`, "SRV").answers), [
    srv(rig.portOf("default/web:v1.api")),
  ]);
  assertEquals(rig.ask(WEB, "SRV").answers.length, 2);
  assertEquals(rig.ask(`_http._tcp.${WEB}`, "A").rcode, "NOERROR");
  for (const name of ["_http._udp", "_https._tcp", "_http", "_udp"]) {
    assertEquals(rig.ask(`${name}.${WEB}`, "SRV").rcode, "NXDOMAIN", name);
  }
});

Deno.test("a UDP port is told like one of TCP", async () => {
  await using rig = new Rig(service("dns", { ports: [udp("dns", 53)] }));
  const port = await rig.proxy.listening("default/dns:dns");
  const [srv] = rig.ask("_dns._udp.dns.default.svc.tunnel", "SRV").answers;
  assert(srv?.type === "SRV");
  assertEquals(srv.data.port, port);
});

Deno.test("where ports differ by address, each has a name for its own", async () => {
  await using rig = new Rig(
    service("web", {
      ports: [tcp("a", 80, "127.0.0.2"), tcp("b", 81, "127.0.0.3")],
    }),
  );
  assertEquals(dataOf(rig.ask(WEB, "A").answers), ["127.0.0.2", "127.0.0.3"]);
  const { answers, additionals } = rig.ask(`_b._tcp.${WEB}`, "SRV");
  const [srv] = answers;
  assert(srv?.type === "SRV");
  assertEquals(srv.data.target, `127-0-0-3.${WEB}`);
  assertEquals(dataOf(additionals), ["127.0.0.3"]);
  assertEquals(dataOf(rig.ask(srv.data.target, "A").answers), ["127.0.0.3"]);
  assertEquals(rig.ask(`127-0-0-4.${WEB}`, "A").rcode, "NXDOMAIN");
});

Deno.test("names of services may have dots and capitals", async () => {
  await using rig = new Rig(service("Web.v1", { namespace: "Shop" }));
  assertEquals(rig.ask("web.v1.shop.svc.tunnel", "A").answers.length, 1);
});

Deno.test("what is not there is told apart from what has no such record", async () => {
  await using rig = new Rig(service("web.v1", { ports: [tcp("http", 80)] }));
  const there = [
    "web.v1.default.svc.tunnel",
    "v1.default.svc.tunnel",
    "default.svc.tunnel",
    "svc.tunnel",
    "_tcp.web.v1.default.svc.tunnel",
    "_http._tcp.web.v1.default.svc.tunnel",
  ];
  for (const name of there) {
    const { rcode, answers, authorities, flag_aa } = rig.ask(name, "TXT");
    assertEquals([rcode, answers, flag_aa], ["NOERROR", [], true], name);
    assertEquals(authorities[0]?.type, "SOA");
  }
  for (
    const name of ["db.default", "web.v1.shop", "shop", "x.web.v1.default"]
  ) {
    const answer = rig.ask(`${name}.svc.tunnel`, "A");
    assertEquals([answer.rcode, answer.flag_aa], ["NXDOMAIN", true], name);
    const [soa] = answer.authorities;
    assert(soa?.type === "SOA");
    assertEquals([soa.name, soa.ttl, soa.data.minimum], ["svc.tunnel", 5, 5]);
  }
  assertEquals(rig.ask("SVC.tunnel", "SOA").answers.length, 1);
});

Deno.test("a service that comes is there at once, and one that goes is not", async () => {
  await using rig = new Rig();
  assertEquals(rig.ask(WEB, "A").rcode, "NXDOMAIN");
  rig.proxy.sink.add({ services: [service("web")] });
  assertEquals(rig.ask(WEB, "A").answers.length, 1);
  rig.proxy.sink.remove({ services: ["default/web"] });
  assertEquals(rig.ask(WEB, "A").rcode, "NXDOMAIN");
});

Deno.test("of a service that could not be bound there is a name and no address", async () => {
  const taken = listenTcp({ hostname: "127.0.0.1", port: 0 }, {
    onConnection() {},
    onProblem() {},
  });
  const port = { ...tcp("", 80), listen: { port: taken.port } };
  await using rig = new Rig(service("web", { ports: [port] }));
  const { rcode, answers } = rig.ask(WEB, "A");
  assertEquals([rcode, answers], ["NOERROR", []]);
  taken.close();
});

Deno.test("other names, classes and transfers are refused, other operations not known", async () => {
  await using rig = new Rig(service("web"));
  for (const name of ["example.com", "tunnel", "xsvc.tunnel", "."]) {
    assertEquals(rig.ask(name, "A").rcode, "REFUSED", name);
  }
  assertEquals(rig.ask("svc.tunnel", "AXFR").rcode, "REFUSED");
  const chaos = [{ name: WEB, type: "A", class: "CH" }];
  assertEquals(rig.ask(WEB, "A", { questions: chaos }).rcode, "REFUSED");
  const update = rig.ask(WEB, "A", { flags: 5 << 11 });
  // Who asks compares it with what he asked.
  assertEquals([update.rcode, update.opcode], ["NOTIMP", "UPDATE"]);
  assertEquals([...rig.dns.counts], [["REFUSED", 6], ["NOTIMP", 1]]);
});

Deno.test("types that nobody knows are nothing to fear", async () => {
  await using rig = new Rig(service("web"));
  for (const type of ["HTTPS", "UNKNOWN_65", "UNKNOWN_65280"]) {
    const asked = question(WEB, type);
    const answer = rig.dns.answer(asked, "udp")!;
    const { rcode, answers } = packet.decode(answer);
    assertEquals([rcode, answers], ["NOERROR", []], type);
    // The question is there as it was.
    assertEquals(
      new Uint8Array(answer.slice(12, asked.length)),
      new Uint8Array(asked.slice(12)),
    );
  }
});

Deno.test("options are answered with options, and with none where there were none", async () => {
  await using rig = new Rig(service("web"));
  const { additionals } = rig.ask(WEB, "A", { additionals: [options(4_096)] });
  const [opt] = additionals;
  assert(opt?.type === "OPT");
  assertEquals(opt.udpPayloadSize, DNS_DATAGRAM_BYTES_MAX);
  assertEquals(rig.ask(WEB, "A").additionals, []);
  const future = rig.ask(WEB, "A", { additionals: [options(4_096, 1)] });
  const [bad] = future.additionals;
  assert(bad?.type === "OPT");
  assertEquals([bad.extendedRcode, bad.ednsVersion], [1, 0], "BADVERS");
  assertEquals(future.answers, []);
  const twice = { additionals: [options(512), options(512)] };
  assertEquals(rig.ask(WEB, "A", twice).rcode, "FORMERR");
});

Deno.test("what is too long for UDP is said to be, and is whole over TCP", async () => {
  const ports = Array.from(
    { length: 30 },
    (_, index) => tcp(`p${index}`, index + 1),
  );
  await using rig = new Rig(service("web", { ports }));
  for (const [size, bytesMax] of [[0, 512], [800, 800], [9_000, 1_232]]) {
    const additionals = size === 0 ? [] : [options(size!)];
    const answer = rig.raw(WEB, "SRV", { additionals })!;
    assert(answer.length <= bytesMax!);
    const { flag_tc, answers } = packet.decode(answer);
    assertEquals([flag_tc, answers], [true, []]);
  }
  const whole = rig.dns.answer(question(WEB, "SRV"), "tcp")!;
  assertEquals(packet.decode(whole).answers.length, 30);
});

Deno.test("addresses of targets are left out first, without a word", async () => {
  const ports = Array.from(
    { length: 5 },
    (_, index) => tcp(`p${index}`, index + 1, `127.0.0.${index + 2}`),
  );
  await using rig = new Rig(service("web", { ports }));
  const { flag_tc, answers, additionals } = rig.ask(WEB, "SRV");
  assertEquals([flag_tc, answers.length, additionals], [false, 5, []]);
});

Deno.test("answers and scraps are not answered", async () => {
  await using rig = new Rig(service("web"));
  const asked = question(WEB, "A");
  const reply = rig.dns.answer(asked, "udp")!;
  assertEquals(rig.dns.answer(reply, "udp"), undefined);
  for (let length = 0; length < 12; length++) {
    assertEquals(rig.dns.answer(asked.subarray(0, length), "udp"), undefined);
  }
  for (let length = 12; length < asked.length; length++) {
    const answer = rig.dns.answer(asked.subarray(0, length), "udp")!;
    assertEquals(packet.decode(answer).rcode, "FORMERR");
  }
});

Deno.test("what announces much, or is long, is not even read", async () => {
  await using rig = new Rig(service("web"));
  for (const at of [4, 6, 8, 10]) {
    const asked = Uint8Array.from(question(WEB, "A"));
    asked.set([0xff, 0xff], at);
    const answer = rig.dns.answer(asked, "udp")!;
    assertEquals(packet.decode(answer).rcode, "FORMERR");
  }
  const long = new Uint8Array(QUESTION_BYTES_MAX + 1);
  long.set(question(WEB, "A"));
  assertEquals(packet.decode(rig.dns.answer(long, "udp")!).rcode, "FORMERR");
});

Deno.test("a name that text cannot hold is an error, and not another name", async () => {
  await using rig = new Rig(service("web"));
  for (const byte of [0x2e, 0x00, 0xff, 0x80]) {
    const asked = Uint8Array.from(question(WEB, "A"));
    asked[14] = byte; // Inside the first label: `w?b`.
    const answer = packet.decode(rig.dns.answer(asked, "udp")!);
    assert(["FORMERR", "NXDOMAIN"].includes(answer.rcode), answer.rcode);
    assertEquals(answer.answers, []);
  }
});

Deno.test("nothing that comes makes it throw, and all that it says can be read", async () => {
  await using rig = new Rig(service("web", { ports: [tcp("http", 80)] }));
  const names = [WEB, `_http._tcp.${WEB}`, "svc.tunnel", "x.svc.tunnel"];
  await forAll(3_000, (prng) => {
    const asked = Uint8Array.from(question(
      prng.pick(names),
      prng.pick(["A", "AAAA", "SRV", "SOA", "ANY", "TXT"]),
      prng.below(2) === 0 ? {} : { additionals: [options(prng.below(2_000))] },
    ));
    for (let flips = prng.below(5); flips > 0; flips--) {
      asked[prng.below(asked.length)] = prng.below(256);
    }
    const cut = prng.below(3) === 0 ? prng.below(asked.length) : asked.length;
    const answer = rig.dns.answer(asked.subarray(0, cut), "udp");
    if (answer === undefined) return;
    assert(answer.length <= DNS_DATAGRAM_BYTES_MAX);
    const { id, type } = packet.decode(answer);
    assertEquals([id, type], [(asked[0]! << 8) | asked[1]!, "response"]);
  });
});

Deno.test("questions are answered over UDP and TCP on one port", async () => {
  await using rig = new Rig(service("web"));
  const listener = await listenDns(LOOPBACK, rig.dns, rig.proxy.context);
  await using client = await DatagramPeer.open();
  client.send(question(WEB, "A"), listener.port);
  const { bytes } = await client.next();
  assertEquals(decodeView(bytes).answers.length, 1);
  const conn = await Deno.connect({ port: listener.port });
  // Two at once, and in pieces.
  const both = [framed(question(WEB, "A")), framed(question(WEB, "SRV"))];
  const message = Uint8Array.from(both.flatMap((one) => [...one]));
  await writeAll(conn, message.subarray(0, 1));
  await writeAll(conn, message.subarray(1, 40));
  await writeAll(conn, message.subarray(40));
  await conn.closeWrite();
  const replies = await readToEnd(conn);
  const first = (replies[0]! << 8) | replies[1]!;
  assertEquals(decodeView(replies.subarray(2, 2 + first)).answers.length, 1);
  const rest = replies.subarray(2 + first);
  assertEquals((rest[0]! << 8) | rest[1]!, rest.length - 2);
  conn.close();
  listener.close();
  await listener.finished;
});

Deno.test("a connection that says nothing, or nonsense, ends", async () => {
  await using rig = new Rig();
  const listener = await listenDns(LOOPBACK, rig.dns, rig.proxy.context);
  const silent = await Deno.connect({ port: listener.port });
  const loud = await Deno.connect({ port: listener.port });
  await writeAll(loud, Uint8Array.of(0xff, 0xff));
  assertEquals((await readToEnd(loud)).length, 0);
  rig.proxy.timers.advance(TCP_IDLE_MS);
  assertEquals((await readToEnd(silent)).length, 0);
  silent.close();
  loud.close();
  listener.close();
  await listener.finished;
});

Deno.test("connections are limited", async () => {
  await using rig = new Rig();
  const listener = await listenDns(LOOPBACK, rig.dns, rig.proxy.context);
  const conns = [];
  for (let count = 0; count < DNS_CONNECTIONS_MAX; count++) {
    conns.push(await Deno.connect({ port: listener.port }));
  }
  const late = await Deno.connect({ port: listener.port });
  assertEquals((await readToEnd(late)).length, 0);
  for (const conn of [...conns, late]) conn.close();
  listener.close();
  await listener.finished;
});

Deno.test("a port that is taken over UDP is not kept over TCP", async () => {
  await using rig = new Rig();
  await using other = await freeOverTcp();
  const at = { ...LOOPBACK, port: other.port };
  const problem = await listenDns(at, rig.dns, rig.proxy.context)
    .then(() => undefined, (error) => error);
  assert(problem instanceof ListenError);
  assertEquals(problem.problem, "in-use");
  Deno.listen({ hostname: "127.0.0.1", port: at.port }).close();
});

/** Has a port over UDP that nobody has over TCP. */
async function freeOverTcp(): Promise<DatagramPeer> {
  for (;;) {
    const peer = await DatagramPeer.open();
    try {
      Deno.listen({ hostname: "127.0.0.1", port: peer.port }).close();
      return peer;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
      await peer[Symbol.asyncDispose]();
    }
  }
}

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

function framed(message: Uint8Array): Uint8Array {
  return Uint8Array.of(message.length >> 8, message.length & 0xff, ...message);
}

function decodeView(bytes: Uint8Array): packet.DecodedPacket {
  return packet.decode(Buffer.from(bytes));
}

/**
 * Attacks on a server that runs: those of `http2_attacks.ts` over sockets, and
 * those that need sockets, time or numbers.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import net from "node:net";
import { IDENTITY_METHODS } from "../../proto/identity/identity_messages.ts";
import { encodePacket } from "../../proto/packets/packet_codec.ts";
import { connect, HostilePeer, pause, type Port } from "./hostile_peer.ts";
import { HTTP2_ATTACKS, type Http2Attack } from "./http2_attacks.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  frame,
  greeting,
  grpcHead,
  literal,
  many,
  setting,
  Type,
  uint32,
} from "./bytes.ts";
import { PROXY_PATH } from "../../proto/link/capabilities.ts";

/** What is attacked, and with what at hand. */
export interface Site {
  readonly socket: string;
  readonly agentPort: number;
  readonly healthPort: number;
  /** PEM. */
  readonly ca: string;
  /** Sends for ever to whoever connects. */
  readonly floodPort: number;
  /** First part of the sources this attacker uses; 0 to 255. */
  readonly part: number;
}

/** What an attacker has seen. */
export interface Report {
  connections: number;
  /** By code of GOAWAY, or by what happened instead. */
  readonly endings: Record<string, number>;
  /** Of connections that the server ended. */
  readonly closedMs: number[];
  /** The most that were open at once. */
  peak?: number;
  reason?: string;
}

/** See the module description. */
export interface LiveAttack {
  readonly name: string;
  readonly known: string;
  /** What the server should say or do. */
  readonly wanted: string;
  readonly seconds: number;
  /** Attackers at once, each a process. */
  readonly attackers?: number;
  run(site: Site, untilMs: number): Promise<Report>;
}

const SECONDS = 3;

const agentPort = (site: Site, alpn = "h2"): Port => ({
  kind: "tls",
  port: site.agentPort,
  ca: site.ca,
  alpn,
});
const frontendPort = (site: Site): Port => ({
  kind: "unix",
  path: site.socket,
});

/** What the table says of an attack. */
type Said = Pick<LiveAttack, "name" | "known" | "wanted">;

const emptyReport = (connections = 0): Report => ({
  connections,
  endings: {},
  closedMs: [],
});

/** One connection after the other, each until the server ends it. */
async function again(
  untilMs: number,
  open: () => Promise<HostilePeer>,
  attack: (peer: HostilePeer, isOver: () => boolean) => Promise<void>,
): Promise<Report> {
  const report = emptyReport();
  const isOver = () => performance.now() >= untilMs;
  while (!isOver()) {
    const peer = await open().catch(() => undefined);
    if (peer === undefined) {
      note(report, "refused");
      await pause(10);
      continue;
    }
    report.connections++;
    await attack(peer, isOver);
    // The answer may be under way: what was said last has to be read first.
    const ending = await Promise.race([peer.ended, pause(2_000)]);
    peer.close();
    if (ending === undefined) {
      note(report, "open");
      continue;
    }
    note(report, ending.code);
    report.closedMs.push(ending.afterMs);
    report.reason = ending.reason;
  }
  return report;
}

function note({ endings }: Report, what: string): void {
  endings[what] = (endings[what] ?? 0) + 1;
}

function overHttp2(
  one: Http2Attack,
  suffix: string,
  portOf: (site: Site) => Port,
  path: string,
): LiveAttack {
  return {
    name: `${one.name}${suffix}`,
    known: one.known,
    wanted: one.code,
    seconds: SECONDS,
    run: (site, untilMs) =>
      again(
        untilMs,
        () => HostilePeer.open(portOf(site), one),
        async (peer, isOver) => {
          let isHeard = await peer.say(one.opening(path));
          for (let round = 0; isHeard && !isOver(); round++) {
            isHeard = await peer.say(one.again(round, path));
          }
          peer.giveUp();
        },
      ),
  };
}

/** `bytes` one at a time, so many a second, until the server has had enough. */
function slowly(
  said: Said & { readonly seconds: number },
  open: (site: Site) => Promise<Deno.Conn>,
  first: Uint8Array,
  bytes: Uint8Array,
): LiveAttack {
  return {
    ...said,
    run: async (site, untilMs) => {
      const peers = await Promise.all(
        Array.from(
          { length: 50 },
          async () => new HostilePeer(await open(site), { isRude: true }),
        ),
      );
      const report = emptyReport(peers.length);
      let open_ = peers.length;
      for (const peer of peers) {
        void peer.ended.then(({ code, afterMs, reason }) => {
          open_--;
          if (performance.now() >= untilMs) return note(report, "open");
          note(report, code);
          report.closedMs.push(afterMs);
          if (reason !== "") report.reason = reason;
        });
      }
      if (first.length > 0) { for (const peer of peers) await peer.say(first); }
      for (let at = 0; open_ > 0 && performance.now() < untilMs; at++) {
        const byte = bytes.subarray(at % bytes.length).subarray(0, 1);
        for (const peer of peers) await peer.say(byte);
        await pause(500);
      }
      for (const peer of peers) peer.close();
      await Promise.all(peers.map(({ ended }) => ended));
      return report;
    },
  };
}

/** As many connections as there can be, from many addresses, kept open. */
function crowd(
  said: Omit<LiveAttack, "run">,
  count: number,
  open: (site: Site, index: number) => net.Socket,
): LiveAttack {
  return {
    ...said,
    run: async (site, untilMs) => {
      const report = emptyReport();
      let isOver = false;
      let here = 0;
      report.peak = 0;
      const sockets: net.Socket[] = [];
      for (let index = 0; index < count; index++) {
        if (performance.now() >= untilMs) break;
        const startMs = performance.now();
        const socket = open(site, index);
        sockets.push(socket);
        socket.on("error", () => {});
        socket.once("connect", () => {
          report.connections++;
          report.peak = Math.max(report.peak!, ++here);
          socket.once("close", () => {
            here--;
            if (isOver) return;
            note(report, "closed");
            report.closedMs.push(performance.now() - startMs);
          });
        });
        socket.resume();
        if (index % 50 === 49) await pause(5);
      }
      while (performance.now() < untilMs) await pause(100);
      isOver = true;
      if (here > 0) report.endings.open = here;
      for (const socket of sockets) socket.destroy();
      return report;
    },
  };
}

/** Another address of the loopback network for each thousand connections. */
function sourceOf({ part }: Site, index: number): string {
  return `127.${10 + part}.${index >> 8 & 255}.${1 + (index & 127)}`;
}

/** A gRPC message around a packet. */
function message(packet: Parameters<typeof encodePacket>[0]): Uint8Array {
  const bytes = encodePacket(packet);
  return joinedBytes([new Uint8Array(1), uint32(bytes.length), bytes]);
}

const oversizedMessage = joinedBytes([new Uint8Array(1), uint32(0xffff_ffff)]);

/** An unauthenticated peer's calls, each with what the server will not take. */
function calls(
  [name, known, wanted]: readonly [name: string, known: string, wanted: string],
  once: (streamId: number) => Uint8Array,
): LiveAttack {
  return {
    ...{ name, known, wanted },
    seconds: SECONDS,
    run: (site, untilMs) =>
      again(
        untilMs,
        () => HostilePeer.open(agentPort(site)),
        async (peer, isOver) => {
          let isHeard = await peer.say(greeting());
          for (let index = 0; isHeard && !isOver(); index += 50) {
            isHeard = await peer.say(
              many(50, (at) => once(2 * (index + at) + 1)),
            );
          }
          peer.giveUp();
        },
      ),
  };
}

const request = (streamId: number, path: string, flags = END_HEADERS) =>
  frame(Type.HEADERS, flags, streamId, grpcHead(path));

/** Calls that flood back and are never read (CVE-2019-9517's other half). */
const ZERO_WINDOW: LiveAttack = {
  name: "zero-window",
  known: "100 dials to a target that never stops, window 0",
  wanted: "open, bounded",
  seconds: 5,
  run: (site, untilMs) =>
    again(
      untilMs,
      () => HostilePeer.open(frontendPort(site)),
      async (peer, isOver) => {
        await peer.say(greeting(setting(4, 0)));
        const address = `127.0.0.1:${site.floodPort}`;
        for (let index = 0; index < 100; index++) {
          const dial = message({
            type: "DIAL_REQ",
            protocol: "tcp",
            address,
            random: BigInt(index + 1),
          });
          const streamId = 2 * index + 1;
          await peer.say(joinedBytes([
            request(streamId, PROXY_PATH),
            frame(Type.DATA, 0, streamId, dial),
          ]));
        }
        while (!isOver()) await pause(50);
      },
    ),
};

/** A gRPC call cut into single bytes, over and over. */
const BYTE_BY_BYTE: LiveAttack = {
  name: "one-byte-writes",
  known: "a legal call, a byte in each write",
  wanted: "served",
  seconds: SECONDS,
  run: (site, untilMs) =>
    again(
      untilMs,
      // Its own ACK of SETTINGS would come between the bytes of a frame.
      () => HostilePeer.open(frontendPort(site), { isRude: true }),
      async (peer, isOver) => {
        await peer.say(joinedBytes([greeting(), frame(Type.SETTINGS, ACK, 0)]));
        for (let index = 0; !isOver(); index++) {
          const streamId = 2 * index + 1;
          const path = "/grpc.health.v1.Health/Check";
          const bytes = joinedBytes([
            request(streamId, path),
            frame(Type.DATA, END_STREAM, streamId, new Uint8Array(5)),
          ]);
          for (let at = 0; at < bytes.length; at++) {
            if (!await peer.say(bytes.subarray(at, at + 1))) return;
          }
        }
      },
    ),
};

/** Whole handshakes without a certificate, one behind the other. */
const HANDSHAKES: LiveAttack = {
  name: "handshakes",
  known: "TLS handshakes as fast as they go, 16 at once",
  wanted: "closed",
  seconds: SECONDS,
  run: async (site, untilMs) => {
    const report = emptyReport();
    await Promise.all(Array.from({ length: 16 }, async () => {
      while (performance.now() < untilMs) {
        try {
          const conn = await connect(agentPort(site)) as Deno.TlsConn;
          await conn.handshake();
          report.connections++;
          conn.close();
        } catch {
          note(report, "refused");
        }
      }
    }));
    return report;
  },
};

const text = (words: string) => new TextEncoder().encode(words);
const tcp = (port: number) => connect({ kind: "tcp", port });
const CLIENT_HELLO_BEGIN = new Uint8Array([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
const NOTHING = new Uint8Array(0);

/** Of both ports, where the frontend's way through the engine is another one. */
const AT_FRONTEND = new Set([
  ...["rapid-reset", "made-you-reset", "continuation-empty", "settings"],
  ...["ping-deaf", "data-empty", "window-shrink", "hpack-bomb"],
]);

/** A head that is longer than heads may be. */
const hugeHead = (streamId: number) =>
  joinedBytes([
    frame(Type.HEADERS, 0, streamId, grpcHead("/AgentService/Connect")),
    ...Array.from({ length: 5 }, (_, index) =>
      frame(
        Type.CONTINUATION,
        index === 4 ? END_HEADERS : 0,
        streamId,
        literal("agentidentifiers", "h".repeat(16_000)),
      )),
  ]);

const hugeJoin = (streamId: number) =>
  joinedBytes([
    request(streamId, IDENTITY_METHODS.join),
    frame(Type.DATA, 0, streamId, oversizedMessage),
  ]);

/** A head of which the rest does not come. */
const BLOCK_BEGIN = joinedBytes([
  greeting(),
  frame(Type.SETTINGS, 1, 0),
  new Uint8Array([0, 64, 0, Type.HEADERS, 0, 0, 0, 0, 1]),
]);

const slow = (name: string, what: string, wanted: string, seconds: number) => ({
  ...{ name: `slow-${name}`, known: `slowloris: ${what}, two bytes a second` },
  ...{ wanted, seconds },
});

const silent = (
  name: string,
  where: string,
  wanted: string,
  seconds: number,
) => ({
  ...{ name, known: `connections that say nothing${where}` },
  ...{ wanted: `${wanted} kept, the rest closed`, seconds },
});

const loopback = (port: number, localAddress?: string) =>
  net.connect({
    host: "127.0.0.1",
    port,
    ...localAddress === undefined ? {} : { localAddress },
  });

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export const LIVE_ATTACKS: readonly LiveAttack[] = [
  ...HTTP2_ATTACKS.map((one) => overHttp2(one, "", (site) => agentPort(site), IDENTITY_METHODS.join)),
  ...HTTP2_ATTACKS.filter(({ name }) => AT_FRONTEND.has(name))
    .map((one) => overHttp2(one, " (frontend)", frontendPort, PROXY_PATH)),
  calls(["calls-unknown", "calls of methods there are not, as fast as they go", "open"],
    (streamId) => request(streamId, "/no/such", END_HEADERS | END_STREAM)),
  calls(["join-oversized", "Join with a message of 4 GiB", "RESOURCE_EXHAUSTED"], hugeJoin),
  calls(["head-oversized", "agent identifiers of 16 KiB, five times, in each head", "ENHANCE_YOUR_CALM"], hugeHead),
  slowly(slow("tls", "a ClientHello", "closed in 10 s", 14),
    ({ agentPort }) => tcp(agentPort), CLIENT_HELLO_BEGIN, new Uint8Array(1)),
  slowly(slow("preface", "HTTP/2's preface", "closed in 10 s", 14),
    (site) => connect(agentPort(site)), NOTHING, text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
  slowly(slow("headers", "a header block", "closed in 10 s", 14),
    (site) => connect(agentPort(site)), BLOCK_BEGIN, new Uint8Array([0x82])),
  slowly(slow("connect", "a CONNECT head", "408 after 60 s", 64),
    ({ socket }) => connect({ kind: "unix", path: socket }),
    text("CONNECT localhost:1 HTTP/1.1\r\n"), text("x: y\r\n")),
  slowly(slow("health", "a request for /healthz", "closed in 10 s", 14),
    ({ healthPort }) => tcp(healthPort), text("GET /healthz HTTP/1.1\r\n"), text("x: y\r\n")),
  ZERO_WINDOW,
  BYTE_BY_BYTE,
  HANDSHAKES,
  crowd({ ...silent("crowd", ", from many addresses", "4096", 25), attackers: 6 },
    17_000, (site, index) => loopback(site.agentPort, sourceOf(site, index))),
  crowd(silent("crowd-one-source", ", from one address", "2048", 12),
    17_000, ({ agentPort }) => loopback(agentPort)),
  crowd(silent("crowd-health", " to the health port", "256", 12),
    10_000, ({ healthPort }) => loopback(healthPort)),
];

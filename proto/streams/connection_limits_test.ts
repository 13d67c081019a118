import { assert, assertEquals } from "@std/assert";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import {
  type AbuseLimits,
  CONNECTION_LIMITS_DEFAULT,
  ExcessError,
  SETTINGS_ENTRIES_MAX,
  TINY_INCREMENT_BYTES,
} from "./abuse_limits.ts";
import { LATE_BYTES_EXTRA } from "./stream_table.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Connection } from "./connection.ts";
import type { ConnectionEnd } from "./connection_events.ts";
import { HEADER_BLOCK_TIMEOUT_MS } from "./header_block.ts";
import { SETTINGS_ACK_TIMEOUT_MS } from "./settings_exchange.ts";

// Each attack is sent once as often as is allowed, and once more.

const FEW = { burst: 10, perSecond: 1 };

/** What is limited, what is sent again and again, and what before. */
// deno-fmt-ignore: a case is a line.
const ATTACKS: readonly [
  name: string,
  limit: keyof AbuseLimits,
  once: (peer: ScriptedHttp2Peer, index: number) => void,
  prepare?: (peer: ScriptedHttp2Peer) => void,
][] = [
  ["PING", "pings", (peer) => peer.ping()],
  ["SETTINGS", "settings", (peer) => peer.settings()],
  ["empty DATA", "emptyData", (peer) => peer.data(1, 0), (peer) => peer.headers(1, requestFields())],
  ["requests that are reset at once (rapid reset)", "resets", (peer, index) => {
    peer.headers(2 * index + 1, requestFields());
    peer.reset(2 * index + 1);
  }],
  ["requests that we must reset (MadeYouReset)", "resets", (peer, index) => {
    peer.headers(2 * index + 1, requestFields());
    peer.windowUpdate(2 * index + 1, 0x7fff_ffff);
  }],
  ["malformed requests", "resets", (peer, index) => peer.headers(2 * index + 1, responseFields())],
  ["WINDOW_UPDATE of a few bytes", "tinyUpdates", (peer) => peer.windowUpdate(0, TINY_INCREMENT_BYTES - 1)],
  ["PRIORITY", "idleFrames", (peer) => peer.send({ type: "PRIORITY", streamId: 1, dependsOn: 0 })],
  [
    "frames of unknown types",
    "idleFrames",
    (peer) =>
      peer.send({ type: "UNKNOWN", code: 0x42, streamId: 0, payloadBytes: 3 }),
  ],
  ["PING answers to no PING", "idleFrames", (peer) => peer.pong()],
  ["acknowledgements of nothing", "idleFrames", (peer) => peer.acknowledge()],
  [
    "frames on streams that are closed",
    "idleFrames",
    (peer) => peer.windowUpdate(1, 5000),
    (peer) => {
      peer.headers(1, requestFields());
      peer.reset(1);
    },
  ],
];

for (const [name, limit, once, prepare] of ATTACKS) {
  // The handshake is one already.
  const limits = {
    [limit]: limit === "settings" ? { ...FEW, burst: 11 } : FEW,
  };
  Deno.test(`too many ${name} end the connection with ENHANCE_YOUR_CALM`, () => {
    const { engine, peer } = engineAndPeer("server", { limits });
    prepare?.(peer);
    for (let index = 0; index < 10; index++) once(peer, index);
    assertEquals(engine.ends, []);
    once(peer, 10);
    assertEquals(engine.ends[0]?.code, ErrorCode.ENHANCE_YOUR_CALM);
  });

  Deno.test(`as many ${name} are fine when they take their time`, () => {
    const { engine, peer } = engineAndPeer("server", { limits });
    prepare?.(peer);
    for (let index = 0; index < 30; index++) {
      once(peer, index);
      engine.clock.advance(1001);
    }
    assertEquals(engine.ends, []);
  });
}

const answered = (accepted: readonly StreamLog[], isEnd: boolean) =>
  accepted.at(-1)!.stream!.sendHeaders(responseFields(), isEnd);

/** What an honest peer does as often as it likes, though it is limited. */
const HONEST: readonly (readonly [
  name: string,
  limit: keyof AbuseLimits,
  say: (peer: ScriptedHttp2Peer, accepted: readonly StreamLog[]) => void,
])[] = [
  ["resets of requests that were answered", "resets", (peer, accepted) => {
    for (let id = 1; id < 100; id += 2) {
      peer.headers(id, requestFields());
      answered(accepted, false);
    }
    for (let id = 1; id < 100; id += 2) peer.reset(id);
  }],
  [
    "one request that is given up per answered one",
    "resets",
    (peer, accepted) => {
      for (let id = 1; id < 200; id += 4) {
        peer.headers(id, requestFields());
        peer.reset(id);
        peer.headers(id + 2, requestFields());
        answered(accepted, true);
      }
    },
  ],
  [
    "small window updates that go along with our DATA",
    "tinyUpdates",
    (peer, accepted) => {
      peer.headers(1, requestFields());
      answered(accepted, false);
      for (let index = 0; index < 100; index++) {
        accepted[0]!.stream!.write(new Uint8Array(10));
        peer.windowUpdate(1, 10);
      }
    },
  ],
  ["PINGs that go along with DATA", "pings", (peer) => {
    peer.headers(1, requestFields());
    for (let index = 0; index < 100; index++) {
      peer.data(1, 100);
      peer.ping();
    }
  }],
  ["PINGs that measure the path of our DATA", "pings", (peer, accepted) => {
    peer.headers(1, requestFields());
    answered(accepted, false);
    for (let index = 0; index < 100; index++) {
      accepted[0]!.stream!.write(new Uint8Array(10));
      peer.ping();
    }
  }],
  [
    "what crosses the end of a stream, for every stream anew",
    "idleFrames",
    (peer, accepted) => {
      for (let id = 1; id < 200; id += 2) {
        peer.headers(id, requestFields(), true);
        answered(accepted, true);
        peer.windowUpdate(id, 5000);
        peer.reset(id);
      }
    },
  ],
];

for (const [name, limit, say] of HONEST) {
  Deno.test(`${name}: honest`, () => {
    const { engine, peer } = engineAndPeer("server", {
      limits: { [limit]: FEW },
    });
    say(peer, engine.accepted);
    assertEquals(engine.ends, []);
  });
}

Deno.test("a client may cancel all its requests at once, by default", () => {
  const { engine, peer } = engineAndPeer("server");
  for (let id = 1; id < 2000; id += 2) peer.headers(id, requestFields());
  for (let id = 1; id < 2000; id += 2) peer.reset(id);
  assertEquals(engine.ends, []);
  assertEquals(engine.connection.openStreams, 0);
});

Deno.test("a whole window may be under way when we reset an upload, and not for ever more", () => {
  const { engine, peer } = engineAndPeer("server", {
    limits: { idleFrames: FEW },
  });
  peer.headers(1, requestFields());
  engine.accepted[0]!.stream!.reset(ErrorCode.CANCEL);
  const windowBytes = 65_536 + LATE_BYTES_EXTRA;
  const frames = Math.floor(windowBytes / 4096);
  for (let frame = 0; frame < frames; frame++) peer.data(1, 4096);
  assertEquals(engine.ends, []);
  peer.data(1, 4096);
  assertEquals(engine.ends[0]?.code, ErrorCode.FLOW_CONTROL_ERROR);
});

Deno.test("replies do not pile up for a peer that never reads", () => {
  const { engine, connection, peer } = engineAndPeer("server", {
    limits: { controlBytesMax: 1000, pings: { burst: 1e6, perSecond: 1 } },
  });
  connection.takeOutput();
  for (let index = 0; index < 58; index++) {
    peer.ping();
  }
  assertEquals(engine.ends, []);
  peer.ping();
  assertEquals(engine.ends[0]?.code, ErrorCode.ENHANCE_YOUR_CALM);
});

Deno.test("a header block ends somewhere, by bytes and by frames", () => {
  const { headerBlockFramesMax, headerBlockBytesMax } =
    CONNECTION_LIMITS_DEFAULT;
  for (const fragmentBytes of [0, 16_384]) {
    const { engine, peer } = engineAndPeer("server");
    peer.send({
      type: "HEADERS",
      streamId: 1,
      endStream: false,
      endHeaders: false,
      fragment: new Uint8Array(0),
    });
    let frames = 1;
    while (engine.ends.length === 0) {
      frames++;
      peer.send({
        type: "CONTINUATION",
        streamId: 1,
        endHeaders: false,
        fragment: new Uint8Array(fragmentBytes),
      });
    }
    assertEquals(engine.ends[0]?.code, ErrorCode.ENHANCE_YOUR_CALM);
    assertEquals(
      frames,
      fragmentBytes === 0
        ? headerBlockFramesMax + 1
        : headerBlockBytesMax / fragmentBytes + 2,
    );
  }
});

Deno.test("only the last closed streams are remembered", () => {
  const { engine, peer } = engineAndPeer("server", {
    limits: { resets: { burst: 1e6, perSecond: 1 } },
  });
  for (let id = 1; id < 4000; id += 2) {
    peer.headers(id, requestFields());
    engine.accepted.at(-1)!.stream!.reset(8);
  }
  peer.forget();
  peer.data(3999, 1); // Remembered: it was under way.
  peer.wants();
  peer.data(1, 1); // Forgotten.
  peer.wants("RST_STREAM 1 5");
  assert(engine.connection.isUsable);
});

Deno.test("SETTINGS have so many entries", () => {
  const entry = { id: 0xff, value: 1 };
  const say = (entries: number) => {
    const { engine, peer } = engineAndPeer("server");
    const settings = new Array(entries).fill(entry);
    peer.send({ type: "SETTINGS", ack: false, settings });
    return engine.ends[0]?.code;
  };
  assertEquals(say(SETTINGS_ENTRIES_MAX), undefined);
  assertEquals(say(SETTINGS_ENTRIES_MAX + 1), ErrorCode.ENHANCE_YOUR_CALM);
});

/** Limits that count, and how much of them is left. */
function scene(limits: {
  readonly streams?: number;
  readonly bytes?: number;
  readonly resets?: number;
}) {
  const timers = new FakeTimers();
  const left = { streams: 9, bytes: 99, resets: 9, ...limits };
  const take = (what: keyof typeof left, amount: number) => {
    if (left[what] < amount) return false;
    left[what] -= amount;
    return true;
  };
  const ends: ConnectionEnd[] = [];
  const engine = new Connection({
    role: "server",
    clock: timers,
    sharedLimits: {
      takeStream: () => take("streams", 1),
      giveStream: () => void left.streams++,
      takeHeaderBytes: (bytes) => take("bytes", bytes),
      giveHeaderBytes: (bytes) => void (left.bytes += bytes),
      takeReset: () => take("resets", 1),
    },
    events: {
      onStream: (stream) => {
        const log = new StreamLog();
        log.stream = stream;
        return log;
      },
      onClosed: (end) => void ends.push(end),
    },
  });
  engine.start();
  const peer = new ScriptedHttp2Peer(engine, "client");
  peer.doHandshake();
  return { timers, engine, peer, left, ends };
}

/** A HEADERS frame whose block goes on, and how it goes on. */
const head = (streamId: number, bytes: number) => ({
  type: "HEADERS",
  streamId,
  endStream: false,
  endHeaders: false,
  fragment: new Uint8Array(bytes).fill(0x82),
} as const);
const tail = (streamId: number, bytes: number) => ({
  type: "CONTINUATION",
  streamId,
  endHeaders: false,
  fragment: new Uint8Array(bytes).fill(0x82),
} as const);

Deno.test("a stream above the shared limit is refused, and each that ends gives its place back", () => {
  const { peer, left, engine } = scene({ streams: 2 });
  for (const streamId of [1, 3, 5]) peer.headers(streamId, requestFields());
  peer.wants(`RST_STREAM 5 ${ErrorCode.REFUSED_STREAM}`);
  assertEquals(left.streams, 0);
  peer.reset(1);
  assertEquals(left.streams, 1);
  peer.headers(7, requestFields());
  assertEquals(left.streams, 0);
  engine.abort(0, "over");
  assertEquals(left.streams, 2);
});

Deno.test("a block that is not complete takes of the shared bytes until it is, or is given up", () => {
  const { peer, left, engine } = scene({ bytes: 50 });
  peer.send(head(1, 20), tail(1, 10));
  assertEquals(left.bytes, 20);
  engine.transportClosed();
  assertEquals(left.bytes, 50);
  const other = scene({ bytes: 50 });
  other.peer.send(head(1, 40), tail(1, 11));
  other.peer.wants(`GOAWAY 0 ${ErrorCode.ENHANCE_YOUR_CALM}`);
  const [end] = other.ends;
  assertEquals((end?.error as ExcessError).excess, "shared");
  assertEquals(other.left.bytes, 50);
});

Deno.test("resets are counted where they are shared, whoever provokes them", () => {
  const { peer, ends } = scene({ resets: 1 });
  peer.headers(1, requestFields());
  peer.reset(1);
  peer.headers(3, requestFields());
  // WINDOW_UPDATE of 2^31-1 makes us reset (CVE-2025-8671).
  peer.windowUpdate(3, 0x7fff_ffff);
  peer.wants(`GOAWAY 3 ${ErrorCode.ENHANCE_YOUR_CALM}`);
  assertEquals((ends[0]?.error as ExcessError).excess, "shared");
});

Deno.test("a block that is begun must be completed in time", () => {
  const { timers, engine, peer, left, ends } = scene({ bytes: 50 });
  timers.advance(SETTINGS_ACK_TIMEOUT_MS);
  engine.onDeadline();
  peer.send(head(1, 20));
  assertEquals(engine.nextDeadlineMs, timers.now() + HEADER_BLOCK_TIMEOUT_MS);
  timers.advance(HEADER_BLOCK_TIMEOUT_MS - 1);
  engine.onDeadline();
  assertEquals(ends, []);
  timers.advance(1);
  engine.onDeadline();
  peer.wants(`GOAWAY 0 ${ErrorCode.ENHANCE_YOUR_CALM}`);
  assertEquals((ends[0]?.error as ExcessError).excess, "headerBlock");
  assertEquals(left.bytes, 50);
});

import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedHttp2Peer } from "../../tests/support/peers/scripted_http2_peer.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ExcessError } from "./abuse_limits.ts";
import { Connection } from "./connection.ts";
import type { ConnectionEnd } from "./connection_events.ts";
import { HEADER_BLOCK_TIMEOUT_MS } from "./header_block.ts";
import { SETTINGS_ACK_TIMEOUT_MS } from "./settings_exchange.ts";

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

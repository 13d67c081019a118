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
  readonly isDeaf?: boolean;
}

/** Frames in one round: one write, so that the attacker is not the limit. */
export const FRAMES_PER_ROUND = 100;

/** RFC 9113 §6.5.2. */
const HEADER_TABLE_SIZE = 1;
const INITIAL_WINDOW_SIZE = 4;

const NONE = new Uint8Array(0);
const PING = frame(Type.PING, 0, 0, new Uint8Array(8));

/** The id of the n-th stream of an attack. */
const idOf = (index: number) => 2 * index + 1;

const head = (index: number, path: string, flags = END_HEADERS) =>
  frame(Type.HEADERS, flags, idOf(index), grpcHead(path));

const reset = (index: number) =>
  frame(Type.RST_STREAM, 0, idOf(index), uint32(8));

/** The same frame all the time, on a connection that has one call open. */
function flood(one: Uint8Array): Pick<Http2Attack, "opening" | "again"> {
  const round = many(FRAMES_PER_ROUND, () => one);
  return {
    opening: (path) => joinedBytes([greeting(), head(0, path)]),
    again: () => round,
  };
}

/** Call after call, each followed by what spoils it. */
function spoiled(
  spoil: (index: number) => Uint8Array,
): Pick<Http2Attack, "opening" | "again"> {
  return {
    opening: () => greeting(),
    again: (round, path) =>
      many(FRAMES_PER_ROUND, (at) => {
        const index = round * FRAMES_PER_ROUND + at;
        return joinedBytes([head(index, path), spoil(index)]);
      }),
  };
}

const CALM = "ENHANCE_YOUR_CALM";

/** See the module description. */
export const HTTP2_ATTACKS: readonly Http2Attack[] = [
  {
    name: "rapid-reset",
    known: "CVE-2023-44487",
    ...spoiled(reset),
    code: CALM,
    excess: "resets",
  },
  {
    name: "made-you-reset",
    known: "CVE-2025-8671: WINDOW_UPDATE of 0",
    ...spoiled((index) => frame(Type.WINDOW_UPDATE, 0, idOf(index), uint32(0))),
    code: CALM,
    excess: "resets",
  },
  {
    name: "made-you-reset-overflow",
    known: "CVE-2025-8671: a stream's window past 2^31-1",
    ...spoiled((index) =>
      frame(Type.WINDOW_UPDATE, 0, idOf(index), uint32(0x7fff_ffff))
    ),
    code: CALM,
    excess: "resets",
  },
  {
    name: "made-you-reset-after-end",
    known: "CVE-2025-8671: DATA behind END_STREAM",
    opening: () => greeting(),
    again: (round, path) =>
      many(FRAMES_PER_ROUND, (at) => {
        const index = round * FRAMES_PER_ROUND + at;
        return joinedBytes([
          head(index, path, END_HEADERS | END_STREAM),
          frame(Type.DATA, 0, idOf(index), new Uint8Array(1)),
        ]);
      }),
    code: CALM,
    excess: "resets",
  },
  {
    name: "made-you-reset-after-answer",
    known: "CVE-2025-8671: DATA behind END_STREAM of a call that was answered",
    opening: () => greeting(),
    again: (round) =>
      many(FRAMES_PER_ROUND, (at) => {
        const index = round * FRAMES_PER_ROUND + at;
        return joinedBytes([
          head(index, "/nothing", END_HEADERS | END_STREAM),
          frame(Type.DATA, 0, idOf(index), new Uint8Array(1)),
        ]);
      }),
    code: CALM,
    excess: "streamErrors",
  },
  {
    name: "goaway",
    known: "GOAWAY again and again, with as much behind it as a frame holds",
    opening: () => greeting(),
    again: () =>
      many(100, () => frame(Type.GOAWAY, 0, 0, new Uint8Array(1_000))),
    code: CALM,
    excess: "idleFrames",
  },
  {
    name: "refused-streams",
    known: "more calls than MAX_CONCURRENT_STREAMS, for ever",
    ...spoiled(() => NONE),
    code: CALM,
    excess: "resets",
  },
  {
    name: "continuation-empty",
    known: "CVE-2024-27316",
    opening: (path) => joinedBytes([greeting(), head(0, path, 0)]),
    again: () => many(FRAMES_PER_ROUND, () => frame(Type.CONTINUATION, 0, 1)),
    code: CALM,
    excess: "headerBlock",
  },
  {
    name: "continuation-large",
    known: "CVE-2024-27316",
    opening: (path) => joinedBytes([greeting(), head(0, path, 0)]),
    again: () =>
      frame(Type.CONTINUATION, 0, 1, literal("x", "y".repeat(16_000))),
    code: CALM,
    excess: "headerBlock",
  },
  {
    name: "settings",
    known: "CVE-2019-9515",
    ...flood(settings()),
    code: CALM,
    excess: "settings",
  },
  {
    name: "settings-huge",
    known: "2,730 entries in each SETTINGS",
    ...flood(settings(...Array.from(
      { length: 2_730 },
      (_, index) => setting(INITIAL_WINDOW_SIZE, index),
    ))),
    code: CALM,
    excess: "settings",
  },
  {
    name: "ping",
    known: "CVE-2019-9512",
    ...flood(PING),
    code: CALM,
    excess: "pings",
  },
  {
    name: "ping-deaf",
    known: "CVE-2019-9512, answers unread",
    ...flood(PING),
    code: CALM,
    excess: "pings",
    isDeaf: true,
  },
  {
    name: "rst-closed",
    known: "RST_STREAM for a stream that is gone",
    opening: (path) => joinedBytes([greeting(), head(0, path), reset(0)]),
    again: () => many(FRAMES_PER_ROUND, () => reset(0)),
    code: CALM,
    excess: "idleFrames",
  },
  {
    name: "rst-idle",
    known: "RST_STREAM for a stream that never was",
    opening: () => greeting(),
    again: (round) => reset(round + 1),
    code: "PROTOCOL_ERROR",
    excess: "",
  },
  {
    name: "window-update-tiny",
    known: "CVE-2019-9511 and 9517: one byte at a time",
    ...flood(frame(Type.WINDOW_UPDATE, 0, 0, uint32(1))),
    code: CALM,
    excess: "tinyUpdates",
  },
  {
    name: "window-overflow",
    known: "the connection's window past 2^31-1",
    ...flood(frame(Type.WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff))),
    code: "FLOW_CONTROL_ERROR",
    excess: "",
  },
  {
    name: "window-shrink",
    known: "INITIAL_WINDOW_SIZE up and down over a hundred calls",
    opening: (path) =>
      joinedBytes([greeting(), many(99, (index) => head(index, path))]),
    again: () =>
      many(FRAMES_PER_ROUND / 2, () =>
        joinedBytes([
          settings(setting(INITIAL_WINDOW_SIZE, 0)),
          settings(setting(INITIAL_WINDOW_SIZE, 0x7fff_ffff)),
        ])),
    code: CALM,
    excess: "settings",
  },
  {
    name: "window-ignored",
    known: "DATA without end, whatever the window",
    opening: (path) => joinedBytes([greeting(), head(0, path)]),
    again: () => frame(Type.DATA, 0, 1, new Uint8Array(16_384)),
    code: "FLOW_CONTROL_ERROR",
    excess: "",
  },
  {
    name: "priority",
    known: "CVE-2019-9513",
    ...flood(frame(Type.PRIORITY, 0, 5, new Uint8Array([0, 0, 0, 3, 16]))),
    code: CALM,
    excess: "idleFrames",
  },
  {
    name: "unknown-frames",
    known: "frame types nobody knows",
    ...flood(frame(Type.UNKNOWN, 0, 0, new Uint8Array(16))),
    code: CALM,
    excess: "idleFrames",
  },
  {
    name: "data-empty",
    known: "CVE-2019-9518",
    ...flood(frame(Type.DATA, 0, 1)),
    code: CALM,
    excess: "emptyData",
  },
  {
    name: "data-padding",
    known: "CVE-2019-9518 with padding: DATA of nothing else",
    ...flood(frame(Type.DATA, 8, 1, new Uint8Array([1, 0]))),
    code: CALM,
    excess: "emptyData",
  },
  {
    name: "headers-empty",
    known: "requests without a single field",
    opening: () => greeting(),
    again: (round) =>
      many(
        FRAMES_PER_ROUND,
        (at) =>
          frame(
            Type.HEADERS,
            END_HEADERS,
            idOf(round * FRAMES_PER_ROUND + at),
          ),
      ),
    code: CALM,
    excess: "resets",
  },
  {
    name: "headers-malformed",
    known: "requests whose fields break §8.2 (smuggling: CR, LF, upper case)",
    opening: () => greeting(),
    again: (round, path) =>
      many(FRAMES_PER_ROUND, (at) =>
        frame(
          Type.HEADERS,
          END_HEADERS,
          idOf(round * FRAMES_PER_ROUND + at),
          joinedBytes([grpcHead(path), literal("x", "a\r\nhost: b")]),
        )),
    code: CALM,
    excess: "resets",
  },
  {
    name: "hpack-bomb",
    known: "CVE-2016-6581: 4 KiB in the table, named 16,000 times",
    opening: () =>
      joinedBytes([
        greeting(),
        frame(
          Type.HEADERS,
          END_HEADERS | END_STREAM,
          1,
          joinedBytes([
            grpcHead("/bomb"),
            indexedLiteral("x", "y".repeat(4_000)),
          ]),
        ),
      ]),
    again: (round) =>
      frame(
        Type.HEADERS,
        END_HEADERS | END_STREAM,
        idOf(round + 1),
        new Uint8Array(16_000).fill(0x80 | 62),
      ),
    code: "COMPRESSION_ERROR",
    excess: "",
  },
  {
    name: "hpack-garbage",
    known: "a block that names an entry there is not",
    opening: () => greeting(),
    again: (round) =>
      frame(
        Type.HEADERS,
        END_HEADERS,
        idOf(round),
        new Uint8Array([0xff, 0xff, 0xff, 0xff, 0x0f]),
      ),
    code: "COMPRESSION_ERROR",
    excess: "",
  },
  {
    name: "table-size-churn",
    known: "HEADER_TABLE_SIZE up and down",
    ...flood(settings(
      setting(HEADER_TABLE_SIZE, 0),
      setting(HEADER_TABLE_SIZE, 0xffff_ffff),
    )),
    code: CALM,
    excess: "settings",
  },
  {
    name: "frame-oversized",
    known: "a frame of 16 MiB less one",
    opening: () => greeting(),
    again: () =>
      joinedBytes([new Uint8Array([255, 255, 255, 0, 0, 0, 0, 0, 1])]),
    code: "FRAME_SIZE_ERROR",
    excess: "",
  },
  {
    name: "push-promise",
    known: "a client that pushes",
    opening: () => greeting(),
    again: () => frame(Type.PUSH_PROMISE, END_HEADERS, 1, uint32(2)),
    code: "PROTOCOL_ERROR",
    excess: "",
  },
];

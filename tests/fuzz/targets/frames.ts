/**
 * The frame decoder: bytes give frames or a `WireError`, whole or in pieces.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import {
  type Frame,
  FRAME_HEADER_BYTES,
  FrameType,
  SettingId,
} from "../../../proto/frames/frame.ts";
import { FrameDecoder } from "../../../proto/frames/frame_decoder.ts";
import { encodeFrame } from "../../support/peers/encoded_frame.ts";
import { WireError } from "../../../proto/frames/wire_error.ts";
import { cut, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that the limit is met. */
const MAX_FRAME_SIZE = 300;

/** Frames of every type as peers send them. */
// deno-fmt-ignore: the columns are the point.
export const SAMPLE_FRAMES: readonly Frame[] = [
  {
    type: "SETTINGS",
    ack: false,
    settings: [
      { id: SettingId.INITIAL_WINDOW_SIZE, value: 70_000 },
      { id: SettingId.HEADER_TABLE_SIZE, value: 100 },
      { id: SettingId.MAX_FRAME_SIZE, value: 20_000 },
    ],
  },
  { type: "SETTINGS", ack: true, settings: [] },
  { type: "PING", ack: false, opaque: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]) },
  { type: "HEADERS", streamId: 1, endStream: false, endHeaders: true,
    fragment: Uint8Array.fromHex("838684418cf1e3c2e5f23a6ba0ab90f4ff"), dependsOn: 0 },
  { type: "HEADERS", streamId: 3, endStream: true, endHeaders: false, fragment: Uint8Array.fromHex("8286") },
  { type: "CONTINUATION", streamId: 3, endHeaders: true, fragment: Uint8Array.fromHex("84") },
  data(1, "hello", false),
  data(1, "", true),
  { type: "WINDOW_UPDATE", streamId: 0, increment: 1000 },
  { type: "WINDOW_UPDATE", streamId: 1, increment: 0x7fff_ffff },
  { type: "PRIORITY", streamId: 5, dependsOn: 1 },
  { type: "RST_STREAM", streamId: 1, errorCode: 8 },
  { type: "PUSH_PROMISE", streamId: 1, promisedId: 2, endHeaders: true, fragment: Uint8Array.fromHex("82") },
  { type: "GOAWAY", lastStreamId: 1, errorCode: 0, debugData: new TextEncoder().encode("bye") },
  { type: "UNKNOWN", code: 0xbe, streamId: 1, payloadBytes: 5 },
];

function data(streamId: number, text: string, endStream: boolean): Frame {
  const payload = new TextEncoder().encode(text);
  return {
    type: "DATA",
    streamId,
    endStream,
    data: payload,
    isFirst: true,
    flowBytes: payload.length,
    paddingBytes: 0,
  };
}

/** Cuts behind every frame, by the lengths that the headers claim. */
export function splitFrames(input: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < input.length;) {
    const length = (input[at]! << 16) | ((input[at + 1] ?? 0) << 8) |
      (input[at + 2] ?? 0);
    const end = at + FRAME_HEADER_BYTES + length;
    frames.push(input.subarray(at, end));
    at = end;
  }
  return frames;
}

/** Writes the true payload length into a frame's header. */
export function repairFrame(record: Uint8Array): Uint8Array {
  if (record.length < FRAME_HEADER_BYTES) return record;
  const length = record.length - FRAME_HEADER_BYTES;
  const repaired = record.slice();
  repaired.set([length >>> 16, length >>> 8, length]);
  return repaired;
}

/** Header bytes of frames and flags, to be stumbled upon. */
export const FRAME_DICTIONARY: readonly Uint8Array[] = [
  ...Object.values(FrameType).map((code) => Uint8Array.of(0, 0, 0, code)),
  Uint8Array.of(0, 0, 5, 0, 0x09, 0, 0, 0, 1, 2, 0x61, 0x62, 0, 0),
  Uint8Array.of(0x7f, 0xff, 0xff, 0xff),
  Uint8Array.of(0, 0, 0, 0),
];

/** See the module description. */
export const FRAMES: FuzzTarget = {
  name: "frames",
  seeds: [
    joinedBytes(SAMPLE_FRAMES.map(encodeFrame)),
    ...SAMPLE_FRAMES.map(encodeFrame),
    // PADDED, which we never write.
    Uint8Array.fromHex("0000060009000000010261620000000000".slice(0, 30)),
  ],
  dictionary: FRAME_DICTIONARY,
  split: splitFrames,
  repair: repairFrame,

  run(input) {
    const whole = decode([input.slice()]);
    assertInStep(input, whole);
    assertEquals(decode(cut(input, prngOf(input))), whole);
    return whole.map((seen) => seen.slice(0, 24)).slice(0, 6).join();
  },
};

/**
 * One entry for each frame that the lengths promise, of the type that stands in
 * the header, or an error: what is skipped is skipped to its end.
 */
function assertInStep(input: Uint8Array, seen: readonly string[]): void {
  for (const [index, frame] of splitFrames(input).entries()) {
    const entry = seen[index];
    if (entry?.startsWith("connection ")) return;
    if (entry === "cut" || frame.length < FRAME_HEADER_BYTES) return;
    const type = TYPE_NAMES[frame[3]!] ?? "UNKNOWN";
    const isRight = entry !== undefined &&
      (entry.startsWith("stream ") || entry.startsWith(`${type} `) ||
        entry.startsWith(`{"type":"${type}"`));
    assert(isRight, `Frame ${index} is ${type}, seen was ${entry}`);
  }
}

const TYPE_NAMES = Object.keys(FrameType);

/** What came out, as text; DATA pieces of one frame are put together. */
function decode(chunks: readonly Uint8Array[]): string[] {
  const decoder = new FrameDecoder(MAX_FRAME_SIZE);
  const seen: string[] = [];
  let dataSoFar = "";
  let head = "";
  for (const chunk of chunks) {
    decoder.push(chunk);
    for (;;) {
      try {
        const frame = decoder.next();
        if (frame === undefined) break;
        if (frame.type !== "DATA") {
          seen.push(describe(frame));
          continue;
        }
        const { streamId, flowBytes, paddingBytes } = frame;
        if (frame.isFirst) {
          head = `DATA ${streamId} ${flowBytes} ${paddingBytes} `;
          dataSoFar = "";
          seen.push(head);
        } else if (flowBytes !== 0 || paddingBytes !== 0) {
          throw new Error("A later piece of DATA was charged again");
        }
        dataSoFar += frame.data.toHex();
        seen[seen.length - 1] = `${head}${dataSoFar}${
          frame.endStream ? " END" : ""
        }`;
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        seen.push(`${error.blast.scope} ${error.code} §${error.section}`);
        if (error.blast.scope === "connection") return seen;
      }
    }
    chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
  }
  seen.push(decoder.isBetweenFrames ? "complete" : "cut");
  return seen;
}

function describe(frame: Frame): string {
  return JSON.stringify(
    frame,
    (_, value) => value instanceof Uint8Array ? value.toHex() : value,
  );
}

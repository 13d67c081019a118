import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import type { DataFrame, Frame } from "./frame.ts";
import { FrameDecoder } from "./frame_decoder.ts";
import { encodeFrame } from "../../tests/support/peers/encoded_frame.ts";
import { WireError } from "./wire_error.ts";

// How this file works. `LEGAL` and `ILLEGAL` are written by hand as bytes from
// the RFC, so a mistake shared by encoder and decoder cannot hide. The property
// tests then vary what the tables cannot list: chunk borders, cuts, bit flips.

/** The encoder never pads, so padded forms are only decoded. */
// deno-fmt-ignore: the columns are the point.
const LEGAL: readonly [
  name: string,
  bytes: string,
  frame: Frame,
  decodeOnly?: true,
][] = [
  ["DATA that ends the stream", "000003 00 01 00000001 616263",         data(1, "616263", true)],
  ["DATA without bytes",        "000000 00 00 00000003",                data(3, "")],
  ["padded DATA", "000006 00 09 00000001 02 616263 0000", {
    ...data(1, "616263", true),
    flowBytes: 6,
    paddingBytes: 3,
  }, true],
  ["HEADERS that end both",     "000002 01 05 00000003 8286",           headers(3, "8286", true)],
  ["HEADERS with a priority",   "000006 01 24 00000005 80000003 0f 82", { ...headers(5, "82"), dependsOn: 3 }, true],
  ["padded HEADERS",            "000004 01 0c 00000005 01 8286 00",     headers(5, "8286"),                    true],
  ["PRIORITY", "000005 02 00 00000007 00000003 0f", { type: "PRIORITY", streamId: 7, dependsOn: 3 }],
  ["RST_STREAM with a code we do not know", "000004 03 00 00000005 deadbeef", {
    type: "RST_STREAM",
    streamId: 5,
    errorCode: 0xdead_beef,
  }],
  [
    "SETTINGS with one we do not know",
    "00000c 04 00 00000000 0004 00010000 f00d ffffffff",
    {
      type: "SETTINGS",
      ack: false,
      settings: [{ id: 4, value: 65_536 }, { id: 0xf00d, value: 0xffff_ffff }],
    },
  ],
  ["SETTINGS acknowledgement", "000000 04 01 00000000", { type: "SETTINGS", ack: true, settings: [] }],
  ["PUSH_PROMISE", "000005 05 04 00000001 00000002 82", {
    type: "PUSH_PROMISE",
    streamId: 1,
    promisedId: 2,
    endHeaders: true,
    fragment: hex("82"),
  }],
  ["PING acknowledgement", "000008 06 01 00000000 0102030405060708", {
    type: "PING",
    ack: true,
    opaque: hex("0102030405060708"),
  }],
  ["GOAWAY with debug data", "00000a 07 00 00000000 7fffffff 0000000b 6869", {
    type: "GOAWAY",
    lastStreamId: 0x7fff_ffff,
    errorCode: 0xb,
    debugData: hex("6869"),
  }],
  ["WINDOW_UPDATE at its largest", "000004 08 00 00000000 7fffffff", {
    type: "WINDOW_UPDATE",
    streamId: 0,
    increment: 0x7fff_ffff,
  }],
  ["CONTINUATION", "000001 09 04 00000003 82", {
    type: "CONTINUATION",
    streamId: 3,
    endHeaders: true,
    fragment: hex("82"),
  }],
  ["a frame type from the future", "000002 f0 00 00000007 0000", {
    type: "UNKNOWN",
    code: 0xf0,
    streamId: 7,
    payloadBytes: 2,
  }],
];

// deno-fmt-ignore: the columns are the point.
const ILLEGAL: readonly [
  name: string,
  bytes: string,
  section: string,
  streamId?: number,
][] = [
  ["DATA on stream 0",                     "000000 00 00 00000000",                  "6.1"],
  ["padding that fills a DATA payload",    "000002 00 08 00000001 02 00",            "6.1"],
  ["PADDED without a pad length",          "000000 00 08 00000001",                  "4.2"],
  ["HEADERS on stream 0",                  "000001 01 04 00000000 82",               "6.2"],
  ["padding that fills a HEADERS payload", "000002 01 0c 00000001 02 00",            "6.2"],
  ["HEADERS too short for its priority",   "000004 01 24 00000001 00000000",         "4.2"],
  ["PRIORITY on stream 0",                 "000005 02 00 00000000 00000001 00",      "6.3"],
  ["short PRIORITY",                       "000004 02 00 00000005 00000001",         "6.3", 5],
  ["RST_STREAM on stream 0",               "000004 03 00 00000000 00000000",         "6.4"],
  ["short RST_STREAM",                     "000003 03 00 00000001 000000",           "6.4"],
  ["SETTINGS on a stream",                 "000000 04 00 00000001",                  "6.5"],
  ["SETTINGS of 5 bytes",                  "000005 04 00 00000000 0004000100",       "6.5"],
  ["SETTINGS acknowledgement with a payload", "000006 04 01 00000000 000400010000",     "6.5"],
  ["PUSH_PROMISE on stream 0",             "000004 05 04 00000000 00000002",         "6.6"],
  ["PUSH_PROMISE whose padding eats its id", "000005 05 0c 00000001 01 000000 00",     "4.2"],
  ["PING on a stream",                     "000008 06 00 00000001 0000000000000000", "6.7"],
  ["long PING",                            "000009 06 00 00000000 000000000000000000", "6.7"],
  ["GOAWAY on a stream",                   "000008 07 00 00000001 0000000000000000", "6.8"],
  ["short GOAWAY",                         "000007 07 00 00000000 00000000000000",   "6.8"],
  ["WINDOW_UPDATE of 0 on the connection", "000004 08 00 00000000 80000000",         "6.9"],
  ["WINDOW_UPDATE of 0 on a stream",       "000004 08 00 00000003 00000000",         "6.9", 3],
  ["short WINDOW_UPDATE",                  "000003 08 00 00000000 000001",           "6.9"],
  ["CONTINUATION on stream 0",             "000000 09 04 00000000",                  "6.10"],
  ["a frame above our limit",              "004001 00 00 00000001",                  "4.2"],
  ["an unknown frame above our limit",     "004001 77 00 00000001",                  "4.2"],
];

for (const [name, bytes, frame, decodeOnly] of LEGAL) {
  Deno.test(`FrameDecoder decodes ${name}`, () => {
    assertEquals(decodeAll([hex(bytes)]), [frame]);
  });
  if (!decodeOnly) {
    Deno.test(`encodeFrame() encodes ${name}`, () => {
      assertEquals(encodeFrame(frame), hex(bytes));
    });
  }
  Deno.test(`FrameDecoder waits on every strict prefix of ${name}`, () => {
    const whole = hex(bytes);
    for (let size = 0; size < whole.length; size++) {
      const seen = decodeAll([whole.slice(0, size)]);
      // DATA and unknown frames are told of before they are complete.
      if (frame.type === "UNKNOWN") continue;
      for (const piece of seen) assert(isUnfinished(piece, frame), name);
    }
  });
}

for (const [name, bytes, section, streamId] of ILLEGAL) {
  Deno.test(`FrameDecoder rejects ${name}`, () => {
    const error = assertThrows(() => decodeAll([hex(bytes)]), WireError);
    assertEquals(error.section, section);
    assertEquals(
      error.blast,
      streamId === undefined
        ? { scope: "connection" }
        : { scope: "stream", streamId },
    );
  });
}

Deno.test("FrameDecoder goes on behind an error of one stream", () => {
  for (const [, bytes, , streamId] of ILLEGAL) {
    if (streamId === undefined) continue;
    const decoder = new FrameDecoder();
    decoder.push(hex(bytes + "000000 04 01 00000000"));
    assertThrows(() => decoder.next(), WireError);
    assertEquals(decoder.next()?.type, "SETTINGS");
  }
});

Deno.test("FrameDecoder hands DATA on before the frame is complete", () => {
  const decoder = new FrameDecoder();
  decoder.push(hex("000003 00 01 00000001 61"));
  assertEquals(decoder.next(), {
    ...data(1, "61"),
    flowBytes: 3,
  });
  assertEquals(decoder.next(), undefined);
  decoder.push(hex("6263"));
  assertEquals(decoder.next(), {
    ...data(1, "6263", true),
    isFirst: false,
    flowBytes: 0,
  });
});

Deno.test("FrameDecoder reports the end of the stream behind the padding", () => {
  const decoder = new FrameDecoder();
  decoder.push(hex("000004 00 09 00000001 02 61 00"));
  assertEquals((decoder.next() as DataFrame).endStream, false);
  assertEquals(decoder.next(), undefined);
  decoder.push(hex("00 000001 00 00 00000003 62"));
  assertEquals(decoder.next(), {
    ...data(1, "", true),
    isFirst: false,
    flowBytes: 0,
  });
  assertEquals(decoder.next(), data(3, "62"));
});

Deno.test("FrameDecoder charges the frame behind a padded one in full", () => {
  const decoder = new FrameDecoder();
  decoder.push(hex("000004 00 08 00000001 02 61 00"));
  decoder.next();
  assertEquals(decoder.next(), undefined);
  decoder.push(hex("00 000002 00 00 00000003 6263"));
  assertEquals(decoder.next(), data(3, "6263"));
});

Deno.test("frames survive any cutting into chunks", () =>
  forAll(300, (prng) => {
    const frames = Array.from({ length: prng.below(8) }, () => anyFrame(prng));
    const bytes = concat(frames.map(encodeFrame));
    assertEquals(decodeAll(cut(bytes, prng)), frames);
  }));

Deno.test("FrameDecoder answers hostile bytes with frames or a WireError", () =>
  forAll(1000, (prng) => {
    const bytes = concat([anyFrame(prng), anyFrame(prng)].map(encodeFrame));
    bytes[prng.below(bytes.length)]! ^= 1 << prng.below(8);
    try {
      decodeAll(cut(bytes, prng));
    } catch (error) {
      assert(error instanceof WireError, `${error}`);
    }
  }));

function data(streamId: number, bytes: string, endStream = false): DataFrame {
  const payload = hex(bytes);
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

function headers(streamId: number, block: string, endStream = false) {
  const fragment = hex(block);
  const type = "HEADERS" as const;
  return { type, streamId, endStream, endHeaders: true, fragment };
}

function isUnfinished(piece: Frame, whole: Frame): boolean {
  return piece.type === "DATA" && whole.type === "DATA" && !piece.endStream;
}

function anyFrame(prng: Prng): Frame {
  const encoded = LEGAL.filter(([, , , decodeOnly]) => !decodeOnly);
  const [, , frame] = prng.pick(encoded);
  if (frame.type !== "DATA") return frame;
  const payload = prng.bytes(prng.below(64));
  return {
    ...frame,
    streamId: 1 + prng.below(100),
    data: payload,
    flowBytes: payload.length,
  };
}

function cut(bytes: Uint8Array, prng: Prng): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < bytes.length;) {
    const size = 1 + prng.below(12);
    chunks.push(bytes.slice(start, start + size));
    start += size;
  }
  return chunks;
}

/** Decodes all, with the pieces of each DATA frame put together again. */
function decodeAll(chunks: readonly Uint8Array[]): Frame[] {
  const decoder = new FrameDecoder();
  const frames: Frame[] = [];
  for (const chunk of chunks) {
    decoder.push(chunk);
    for (let frame; (frame = decoder.next()) !== undefined;) {
      const last = frames.at(-1);
      if (frame.type === "DATA" && !frame.isFirst && last?.type === "DATA") {
        const joined = concat([last.data, frame.data]);
        const { endStream } = frame;
        frames[frames.length - 1] = { ...last, endStream, data: joined };
      } else {
        frames.push(copied(frame));
      }
    }
    chunk.fill(0xee); // Nothing that was handed out may be looked at again.
  }
  return frames;
}

/** A frame is only valid until the next one. */
function copied(frame: Frame): Frame {
  const copy: Record<string, unknown> = { ...frame };
  for (const [key, value] of Object.entries(copy)) {
    if (value instanceof Uint8Array) copy[key] = value.slice();
  }
  return copy as unknown as Frame;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function hex(spaced: string): Uint8Array {
  const digits = spaced.replaceAll(" ", "").match(/../g) ?? [];
  return Uint8Array.from(digits, (pair) => parseInt(pair, 16));
}

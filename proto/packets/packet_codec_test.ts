import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import protobuf from "protobufjs";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { canonicalInt64 } from "./int64.ts";
import { decodePacket, encodePacket } from "./packet_codec.ts";
import { type Int64, type Packet, PacketError, PacketType } from "./packet.ts";

// How this file works. `GOLDEN` is what Konnectivity's own binaries put on the
// wire, so encoder and decoder cannot share a mistake. protobufjs' reflection,
// from konnectivity.proto, is the oracle for random packets both ways.

const CLOSE_7: Packet = { type: "CLOSE_REQ", connectId: 7, reset: "" };
const CLOSE_0: Packet = { ...CLOSE_7, connectId: 0 };

type Case = readonly [name: string, bytes: string, packet: Packet];

// deno-fmt-ignore: the columns are the point.
const GOLDEN: readonly Case[] = [
  [
    "DIAL_REQ, which has no type field",
    "12 1d 0a 03 746370 12 0c 31302e302e302e313a343433" +
    "18 f0e7e7b7b1bdaff225",
    {
      type: "DIAL_REQ",
      protocol: "tcp",
      address: "10.0.0.1:443",
      random: varint("f0e7e7b7b1bdaff225"),
    },
  ],
  ["DIAL_CLS",  "08 05 3a 0a 08 f0e7e7b7b1bdaff225", { type: "DIAL_CLS", random: varint("f0e7e7b7b1bdaff225") }],
  ["DRAIN",     "08 06 42 00",                       { type: "DRAIN" }],
  ["CLOSE_REQ", "08 02 2a 02 08 07",                 CLOSE_7],
  ["CLOSE_RSP", "08 03 32 02 10 07",                 { type: "CLOSE_RSP", error: "", connectId: 7, reset: "" }],
];

// deno-fmt-ignore: the columns are the point.
const OURS: readonly Case[] = [
  ["DATA",                  "08 04 22 07 08 07 1a 03 616263", { type: "DATA", connectId: 7, data: hex("616263") }],
  ["DATA without payload",  "08 04 22 02 08 07",              { type: "DATA", connectId: 7, data: hex("") }],
  ["an empty datagram", "08 04 22 04 08 07 78 01", {
    type: "DATA",
    connectId: 7,
    data: hex(""),
    emptyDatagram: true,
  }],
  [
    "a failed DIAL_RSP, which has no connectID",
    "08 01 1a 06 0a 02 6e6f 18 05",
    { type: "DIAL_RSP", error: "no", connectId: 0, random: 5 },
  ],
  ["DATA_END",              "08 40 82 04 02 08 07",           { type: "DATA_END", connectId: 7 }],
  ["CLOSE_REQ that resets", "08 02 2a 05 08 07 7a 01 78",     { type: "CLOSE_REQ", connectId: 7, reset: "x" }],
  ["CLOSE_RSP that resets", "08 03 32 05 10 07 7a 01 78", { type: "CLOSE_RSP", error: "", connectId: 7, reset: "x" }],
  ["CLOSE_RSP that tells of a loss", "08 03 32 08 10 07 7a 01 78 8001 01", {
    type: "CLOSE_RSP",
    error: "",
    connectId: 7,
    reset: "x",
    lost: true,
  }],
  ["a negative connectID in ten bytes", "08 02 2a 0b 08 ffffffffffffffffff01", {
    type: "CLOSE_REQ",
    connectId: -1,
    reset: "",
  }],
  ["the smallest connectID there is", "08 02 2a 0b 08 80808080808080808001", {
    type: "CLOSE_REQ",
    connectId: -(2n ** 63n),
    reset: "",
  }],
  ["a type we do not know", "08 2a",                          { type: "UNKNOWN", code: 42 }],
];

for (const [name, bytes, packet] of [...GOLDEN, ...OURS]) {
  Deno.test(`${name}: bytes both ways`, () => {
    assertEquals(encodePacket(packet), hex(bytes));
    assertEquals(decodePacket(hex(bytes)), packet);
  });
}

// deno-fmt-ignore: the columns are the point.
const TOLERATED: readonly Case[] = [
  ["no bytes at all, which is Go's zero packet", "", { type: "DIAL_REQ", protocol: "", address: "", random: 0 }],
  ["the payload in front of the type",   "2a 02 08 07 08 02",             CLOSE_7],
  [
    "unknown fields of every wire type, inside and outside",
    "08 02 a006 05 a106 0102030405060708 a206 02 ffff a506 01020304" +
    "a306 08 01 a406 2a 06 08 07 f201 01 ff",
    CLOSE_7,
  ],
  ["a known field of another wire type", "08 02 2a 06 0a 02 6e6f 08 07",  CLOSE_7],
  ["several types: the last one counts", "08 06 08 02 2a 02 08 07",       CLOSE_7],
  ["several members of the oneof: the last one counts", "08 02 32 02 10 09 2a 02 08 07", CLOSE_7],
  ["nothing of an earlier member",       "08 02 3a 02 08 09 2a 00",       CLOSE_0],
  ["nothing of another type's payload",  "08 02 3a 02 08 09",             CLOSE_0],
  ["one member twice: the fields merge", "08 01 1a 02 10 07 1a 02 18 05", {
    type: "DIAL_RSP",
    error: "",
    connectId: 7,
    random: 5,
  }],
  ["a payload that is not the type's: all defaults", "08 02 32 02 10 09",             CLOSE_0],
  ["varints wider than they need be",    "08 8200 2a 83 00 08 87 00",     CLOSE_7],
  [
    "the marker of an empty datagram beside a payload",
    "08 04 22 07 08 07 78 01 1a 01 61",
    { type: "DATA", connectId: 7, data: hex("61") },
  ],
  ["a negative type",                    "08 ffffffffffffffffff01",       { type: "UNKNOWN", code: -1 }],
];

for (const [name, bytes, packet] of TOLERATED) {
  Deno.test(`decodes ${name}`, () => {
    assertEquals(decodePacket(hex(bytes)), packet);
  });
}

// deno-fmt-ignore: the columns are the point.
const ILLEGAL: readonly [name: string, bytes: string, says: string][] = [
  ["a tag cut off",                    "08",                                 "out of range"],
  ["an endless varint",                "08 " + "ff".repeat(11),                   "varint"],
  ["an endless varint in a payload",   "08 02 2a 0c 08" + "80".repeat(10) + "01", "varint"],
  ["a payload longer than the packet", "08 02 2a 03 08 07",                  "claims 3 bytes, 2 are left"],
  ["a text longer than its payload",   "12 05 0a 09 746370",                 "claims 9 bytes, 3 are left"],
  ["a payload that ends inside its field, with bytes behind it", "08 02 2a 01 08 07", "out of range"],
  ["field number 0",                   "00 01",                              "field number 0"],
  ["wire type 6",                      "7e 01",                              "wire type 6"],
  ["wire type 7",                      "7f 01",                              "wire type 7"],
  ["an end of no group",               "7c",                                 "wire type 4"],
  ["groups nested without end",        "7b".repeat(10_000),                  "depth"],
  ["an address that is not UTF-8",     "12 03 12 01 ff",                     "not UTF-8"],
  ["a skipped field longer than the packet", "a206 7f",                            "out of range"],
];

for (const [name, bytes, says] of ILLEGAL) {
  Deno.test(`refuses ${name}`, () => {
    assertThrows(() => decodePacket(hex(bytes)), PacketError, says);
  });
}

Deno.test("one flipped bit gives a packet or a PacketError", async () => {
  await forAll(2_000, (prng) => {
    const bytes = encodePacket(randomPacket(prng));
    if (bytes.length === 0) return;
    bytes[prng.below(bytes.length)]! ^= 1 << prng.below(8);
    decodeOrPacketError(bytes);
  });
});

Deno.test("refuses identifiers that are no exact int64", () => {
  for (const random of [2 ** 53, 0.5, NaN, 2n ** 63n, -(2n ** 63n) - 1n]) {
    assertThrows(
      () => encodePacket({ type: "DIAL_CLS", random }),
      RangeError,
      "exact 64-bit",
    );
  }
});

Deno.test("a text with a lone surrogate is sent as UTF-8 all the same", () => {
  const bytes = encodePacket({
    type: "CLOSE_RSP",
    error: "\ud800!",
    connectId: 1,
    reset: "",
  });
  const packet = decodePacket(bytes);
  assertEquals(packet.type === "CLOSE_RSP" && packet.error, "\ufffd!");
});

const ORACLE = protobuf.parse(
  await Deno.readTextFile(new URL("../konnectivity.proto", import.meta.url)),
).root.lookupType("Packet");

const MEMBER = {
  DIAL_REQ: "dialRequest",
  DIAL_RSP: "dialResponse",
  DATA: "data",
  CLOSE_REQ: "closeRequest",
  CLOSE_RSP: "closeResponse",
  DIAL_CLS: "closeDial",
  DRAIN: "drain",
  DATA_END: "dataEnd",
} as const;

Deno.test("protobufjs reads what we write", async () => {
  await forAll(2_000, (prng) => {
    const packet = randomPacket(prng);
    const seen = ORACLE.toObject(ORACLE.decode(encodePacket(packet)), {
      longs: String,
      bytes: Array,
    });
    assertEquals(seen, toOracle(packet));
  });
});

Deno.test("we read what protobufjs writes", async () => {
  await forAll(2_000, (prng) => {
    const packet = randomPacket(prng);
    const bytes = ORACLE.encode(ORACLE.fromObject(toOracle(packet))).finish();
    assertEquals(decodePacket(Uint8Array.from(bytes)), packet);
  });
});

/** The packet as protobufjs' plain object: defaults absent, int64 as text. */
function toOracle(packet: Packet): Record<string, unknown> {
  if (packet.type === "UNKNOWN") return { type: packet.code };
  const payload: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(packet)) {
    if (key === "type" || value === 0 || value === "") continue;
    const field = key === "connectId" ? "connectID" : key;
    if (value instanceof Uint8Array) {
      if (value.length > 0) payload[field] = Array.from(value);
    } else if (typeof value === "number" || typeof value === "bigint") {
      payload[field] = String(value);
    } else payload[field] = value;
  }
  const code = PacketType[packet.type];
  return {
    ...(code === 0 ? {} : { type: code }),
    [MEMBER[packet.type]]: payload,
  };
}

function randomPacket(prng: Prng): Packet {
  const text = () =>
    prng.pick(["", "tcp", "10.0.0.1:443", "größer 🚇", "x".repeat(200)]);
  const connectId = randomInt64(prng);
  const random = randomInt64(prng);
  switch (prng.below(10)) {
    case 0:
      return { type: "DIAL_REQ", protocol: text(), address: text(), random };
    case 1:
      return { type: "DIAL_RSP", error: text(), connectId, random };
    case 2:
      return { type: "CLOSE_REQ", connectId, reset: text(), lost: true };
    case 3:
      return { type: "CLOSE_RSP", error: text(), connectId, reset: text() };
    case 4:
      return { type: "DIAL_CLS", random };
    case 5:
      return { type: "DRAIN" };
    case 6:
      return { type: "DATA_END", connectId };
    case 7:
      return { type: "UNKNOWN", code: prng.pick([7, 63, 65, 2 ** 31 - 1, -5]) };
    case 8:
      return { type: "DATA", connectId, data: hex(""), emptyDatagram: true };
    default:
      return { type: "DATA", connectId, data: prng.bytes(prng.below(300)) };
  }
}

/** Any int64, with the borders of varint widths and safe integers well hit. */
function randomInt64(prng: Prng): Int64 {
  const edge = 2n ** BigInt(prng.below(64)) + BigInt(prng.below(3) - 1);
  const value = BigInt.asIntN(64, prng.below(4) === 0 ? -edge : edge);
  return canonicalInt64(value);
}

function decodeOrPacketError(bytes: Uint8Array): void {
  try {
    decodePacket(bytes);
  } catch (error) {
    assertInstanceOf(error, PacketError);
  }
}

/** What the varint in `bytes` says, computed the slow way. */
function varint(bytes: string): Int64 {
  const value = hex(bytes).reduceRight(
    (sum, byte) => (sum << 7n) | BigInt(byte & 0x7f),
    0n,
  );
  return canonicalInt64(BigInt.asIntN(64, value));
}

function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replaceAll(" ", ""));
}

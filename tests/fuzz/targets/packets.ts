/**
 * The packet reader: what it passes on piece by piece is what decoding whole
 * messages gives, and every byte is accounted for once.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { type Packet, PacketError } from "../../../proto/packets/packet.ts";
import {
  decodePacket,
  encodePacket,
} from "../../../proto/packets/packet_codec.ts";
import { PacketReader } from "../../../proto/packets/packet_reader.ts";
import { cut, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";
import { framed, repairMessage, splitMessages } from "./grpc_messages.ts";

/** Small, so that the limit is met. */
const MESSAGE_BYTES_MAX = 1000;

const BIG_ID = 2n ** 62n + 1n;

const SAMPLE_PACKETS: readonly Packet[] = [
  {
    type: "DIAL_REQ",
    protocol: "tcp",
    address: "10.0.0.7:443",
    random: BIG_ID,
  },
  { type: "DIAL_RSP", error: "", connectId: 7, random: BIG_ID },
  { type: "DIAL_RSP", error: "refused", connectId: 0, random: 1 },
  { type: "DATA", connectId: 7, data: new TextEncoder().encode("hello") },
  { type: "DATA", connectId: BIG_ID, data: new Uint8Array(300) },
  { type: "DATA", connectId: 0, data: new Uint8Array(0) },
  { type: "DATA", connectId: 1, data: new Uint8Array(0), emptyDatagram: true },
  { type: "CLOSE_REQ", connectId: 7, reset: "" },
  { type: "CLOSE_RSP", error: "", connectId: -1, reset: "lost", lost: true },
  { type: "DIAL_CLS", random: 5 },
  { type: "DRAIN" },
  { type: "DATA_END", connectId: 7 },
  { type: "UNKNOWN", code: 99 },
];

const SAMPLES = SAMPLE_PACKETS.map((packet) => framed(encodePacket(packet)));

/** See the module description. */
export const PACKETS: FuzzTarget = {
  name: "packets",
  seeds: [
    ...SAMPLES,
    joinedBytes(SAMPLES),
    // DATA whose payload stands in front of its connection id.
    framed(Uint8Array.fromHex("0804220" + "51a0161" + "0807")),
    // Two payloads of different types; a field of wire type 1.
    framed(Uint8Array.fromHex("08042203080761" + "2a020807")),
  ],
  dictionary: [
    Uint8Array.of(0x22, 0x04, 0x08, 0x07, 0x1a, 0x00),
    Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
    Uint8Array.of(0x08, 0x04),
    Uint8Array.of(0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f),
    Uint8Array.of(0x12, 0x00),
  ],
  split: splitMessages,
  repair: repairMessage,

  run(input) {
    const whole = read([input.slice()]);
    assertEquals(read(cut(input, prngOf(input))), whole);
    assertEquals(whole, readNaively(input));
    return whole.map((seen) => seen.slice(0, 14)).slice(0, 6).join();
  },
};

function read(chunks: readonly Uint8Array[]): string[] {
  const seen: string[] = [];
  let pushed = 0;
  let accounted = 0;
  let left = 0;
  let payload = "";
  const reader = new PacketReader({
    onPacket: (packet) => seen.push(describe(packet)),
    onData(connectId, piece, leftBytes) {
      if (left > 0) assertEquals(piece.length + leftBytes, left);
      payload = (left > 0 ? payload : "") + piece.toHex();
      left = leftBytes;
      accounted += piece.length;
      if (left === 0) seen.push(`DATA ${connectId} ${payload}`);
    },
    onEmptyDatagram: (connectId) => seen.push(`DATAGRAM ${connectId}`),
    onOverhead(bytes) {
      assert(bytes > 0);
      accounted += bytes;
    },
  }, { messageBytesMax: MESSAGE_BYTES_MAX });
  try {
    for (const chunk of chunks) {
      reader.push(chunk);
      pushed += chunk.length;
      chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
    }
  } catch (error) {
    if (!(error instanceof PacketError)) throw error;
    // A message that is cut short has passed on some of its payload already.
    return [...seen, "error"];
  }
  if (reader.isBetweenMessages) assertEquals(accounted, pushed);
  else seen.push("cut");
  return seen;
}

/** What whole messages decode to. */
function readNaively(input: Uint8Array): string[] {
  const seen: string[] = [];
  for (const message of splitMessages(input)) {
    if (message.length < 5) return [...seen, "cut"];
    const view = new DataView(message.buffer, message.byteOffset);
    const announced = view.getUint32(1);
    if (message[0] !== 0 || announced > MESSAGE_BYTES_MAX) {
      return [...seen, "error"];
    }
    if (message.length < 5 + announced) return [...seen, "cut"];
    try {
      const packet = decodePacket(message.subarray(5));
      if (packet.type !== "DATA") seen.push(describe(packet));
      else if (packet.emptyDatagram) seen.push(`DATAGRAM ${packet.connectId}`);
      else seen.push(`DATA ${packet.connectId} ${packet.data.toHex()}`);
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      return [...seen, "error"];
    }
  }
  return seen;
}

function describe(packet: Packet): string {
  return JSON.stringify(
    packet,
    (_, value) => typeof value === "bigint" ? `${value}n` : value,
  );
}

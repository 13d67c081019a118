import { assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { encodePacket } from "./packet_codec.ts";
import { type Int64, type Packet, PacketError } from "./packet.ts";
import {
  COLD_PACKET_BYTES_MAX,
  PACKET_MESSAGE_BYTES_MAX,
  PacketReader,
} from "./packet_reader.ts";
import {
  DATA_FRAME_BYTES,
  DATA_HEAD_BYTES_MAX,
  dataBytesThatFit,
  dataHeadBytes,
  writeDataHead,
} from "./data_head.ts";
import { canonicalInt64 } from "./int64.ts";

type Seen =
  | Exclude<Packet, { type: "DATA" }>
  | { type: "DATA"; connectId: Int64; bytes: number[] }
  | { type: "EMPTY_DATAGRAM"; connectId: Int64 };

/** A reader whose events are put back together into whole packets. */
class Probe {
  readonly seen: Seen[] = [];
  overheadBytes = 0;
  dataBytes = 0;
  piecesSeen = 0;
  readonly reader: PacketReader;
  #bytes: number[] = [];

  constructor(messageBytesMax?: number) {
    this.reader = new PacketReader(
      {
        onPacket: (packet) => this.seen.push(packet),
        onEmptyDatagram: (connectId) =>
          this.seen.push({ type: "EMPTY_DATAGRAM", connectId }),
        onData: (connectId, piece, leftBytes) => {
          this.piecesSeen++;
          this.dataBytes += piece.length;
          for (const byte of piece) this.#bytes.push(byte);
          if (leftBytes > 0) return;
          this.seen.push({ type: "DATA", connectId, bytes: this.#bytes });
          this.#bytes = [];
        },
        onOverhead: (bytes) => {
          this.overheadBytes += bytes;
        },
      },
      messageBytesMax === undefined ? {} : { messageBytesMax },
    );
  }
}

const seenData = (connectId: Int64, ...bytes: number[]): Seen => ({
  type: "DATA",
  connectId,
  bytes,
});

// deno-fmt-ignore: the columns are the point.
const DATA_FORMS: readonly [name: string, bytes: string, seen: Seen][] = [
  ["without a connectID",             "08 04 22 05 1a 03 616263",            seenData(0, 0x61, 0x62, 0x63)],
  ["without payload",                 "08 04 22 02 08 07",                   seenData(7)],
  ["with a payload of no bytes",      "08 04 22 04 08 07 1a 00",             seenData(7)],
  ["with nothing at all",             "08 04 22 00",                         seenData(0)],
  ["without even an inner message",   "08 04",                               seenData(0)],
  [
    "with varints as wide as they get",
    "08 84808080808080808000 22 9780808000 08 87808080808080808000" +
    "1a 8180808080808080800061",
    seenData(7, 0x61),
  ],
  [
    "with a connectID beyond the safe integers",
    "08 04 22 0d 08 ffffffffffffffff7f 1a 01 61",
    seenData(2n ** 63n - 1n, 0x61),
  ],
  ["with its error text",             "08 04 22 08 08 07 12 01 78 1a 01 61", seenData(7, 0x61)],
  ["with the payload in front of the connectID", "08 04 22 05 1a 01 61 08 07",          seenData(7, 0x61)],
  ["with the type behind everything", "22 05 08 07 1a 01 61 08 04",          seenData(7, 0x61)],
  ["with an unknown field behind everything", "08 04 22 05 08 07 1a 01 61 a006 01",  seenData(7, 0x61)],
  ["marked as an empty datagram", "08 04 22 04 08 07 78 01", { type: "EMPTY_DATAGRAM", connectId: 7 }],
];

for (const [name, bytes, seen] of DATA_FORMS) {
  Deno.test(`reads DATA ${name}, whole and byte by byte`, () => {
    const body = message(hex(bytes));
    for (const cut of [body.length, 1, 3]) {
      const probe = new Probe();
      for (let at = 0; at < body.length; at += cut) {
        probe.reader.push(body.subarray(at, at + cut));
      }
      assertEquals(probe.seen, [seen]);
      assertEquals(probe.overheadBytes + probe.dataBytes, body.length);
    }
  });
}

Deno.test("random packets survive random cutting, and every byte is counted", async () => {
  await forAll(300, (prng) => {
    const packets = Array.from(
      { length: 1 + prng.below(12) },
      () => randomPacket(prng),
    );
    const body = join(packets.map((packet) => message(disorder(prng, packet))));
    const probe = new Probe();
    const chunkMax = prng.pick([1, 7, 60, 1_460, body.length]);
    for (let at = 0; at < body.length;) {
      const count = 1 + prng.below(chunkMax);
      probe.reader.push(body.slice(at, at + count));
      at += count;
    }
    assertEquals(probe.seen, packets.map(toSeen));
    assertEquals(probe.reader.isBetweenMessages, true);
    assertEquals(probe.overheadBytes + probe.dataBytes, body.length);
  });
});

Deno.test("every strict prefix of a body waits for more", () => {
  const body = message(
    encodePacket({ type: "DIAL_CLS", random: 2n ** 62n }),
  );
  for (let end = 1; end < body.length; end++) {
    const probe = new Probe();
    probe.reader.push(body.subarray(0, end));
    assertEquals(probe.seen, []);
    assertEquals(probe.reader.isBetweenMessages, false);
    probe.reader.push(body.subarray(end));
    assertEquals(probe.seen.length, 1);
  }
});

Deno.test("one flipped bit gives packets or a PacketError", async () => {
  await forAll(1_000, (prng) => {
    const body = join([
      message(encodePacket(randomPacket(prng))),
      message(encodePacket(randomPacket(prng))),
    ]);
    body[prng.below(body.length)]! ^= 1 << prng.below(8);
    const probe = new Probe();
    try {
      probe.reader.push(body);
    } catch (error) {
      assertInstanceOf(error, PacketError);
    }
  });
});

Deno.test("a message of 5 MiB passes in the pieces that arrive", () => {
  const bytes = 5 * 1024 * 1024;
  const body = message(
    encodePacket({ type: "DATA", connectId: 1, data: new Uint8Array(bytes) }),
  );
  let largest = 0;
  let sum = 0;
  const reader = new PacketReader({
    onPacket: () => {},
    onOverhead: () => {},
    onData: (_connectId, piece) => {
      largest = Math.max(largest, piece.length);
      sum += piece.length;
    },
  });
  for (let at = 0; at < body.length; at += 16_384) {
    reader.push(body.subarray(at, at + 16_384));
  }
  assertEquals(sum, bytes);
  assertEquals(largest, 16_384);
});

Deno.test("refuses a message over the limit and names both sizes", () => {
  const over = PACKET_MESSAGE_BYTES_MAX + 1;
  assertThrows(
    () => new Probe().reader.push(prefix(over)),
    PacketError,
    `${over} bytes: the limit for one message is ${PACKET_MESSAGE_BYTES_MAX}`,
  );
  assertThrows(
    () => new Probe(100).reader.push(prefix(101)),
    PacketError,
    "101 bytes: the limit for one message is 100",
  );
  new Probe(101).reader.push(prefix(101));
});

Deno.test("refuses a cold packet over its own limit before gathering it", () => {
  const over = COLD_PACKET_BYTES_MAX + 1;
  for (const start of ["08 02", "12", "a006", "08 2a"]) {
    const probe = new Probe();
    assertThrows(
      () => probe.reader.push(join([prefix(over), hex(start)])),
      PacketError,
      `the limit for anything but DATA is ${COLD_PACKET_BYTES_MAX}`,
    );
    assertThrows(
      () => probe.reader.push(hex("00")),
      PacketError,
      "an earlier one was bad",
    );
  }
});

Deno.test("refuses compression that was never offered and unknown flags", () => {
  assertThrows(
    () => new Probe().reader.push(hex("01 00000002 08 06")),
    PacketError,
    "compressed",
  );
  assertThrows(
    () => new Probe().reader.push(hex("02 00000002 08 06")),
    PacketError,
    "flag is 2",
  );
});

Deno.test("large DATA out of order is credited while it is gathered", () => {
  const body = message(outOfOrder(7, new Uint8Array(300_000)));
  const probe = new Probe();
  let pushed = 0;
  for (let at = 0; at < body.length - 16_384; at += 16_384) {
    probe.reader.push(body.subarray(at, at + 16_384));
    pushed = at + 16_384;
    assertEquals(pushed - probe.overheadBytes <= 8_192 + 5, true);
  }
  probe.reader.push(body.subarray(pushed));
  assertEquals(probe.seen.length, 1);
});

Deno.test("window gained by DATA out of order is at most one message", () => {
  const probe = new Probe();
  const body = message(outOfOrder(7, new Uint8Array(40_000)));
  for (let count = 1; count <= 50; count++) {
    probe.reader.push(body.subarray(0, 20_000));
    probe.reader.push(body.subarray(20_000));
    const credited = probe.overheadBytes + probe.dataBytes;
    assertEquals(probe.seen.length, count);
    assertEquals(credited - count * body.length <= body.length, true);
  }
});

Deno.test("gathered DATA pays back what was credited early", () => {
  const probe = new Probe();
  const body = message(outOfOrder(7, new Uint8Array(9_000)));
  probe.reader.push(body.subarray(0, 9_000));
  probe.reader.push(body.subarray(9_000));
  const drain = message(encodePacket({ type: "DRAIN" }));
  for (let i = 0; i < 200; i++) probe.reader.push(drain);
  assertEquals(
    probe.overheadBytes + probe.dataBytes,
    body.length + 200 * drain.length,
  );
});

function toSeen(packet: Packet): Seen {
  if (packet.type !== "DATA") return packet;
  const { connectId, data } = packet;
  return packet.emptyDatagram
    ? { type: "EMPTY_DATAGRAM", connectId }
    : { type: "DATA", connectId, bytes: Array.from(data) };
}

/** The packet's bytes, DATA sometimes in an order nobody writes. */
function disorder(prng: Prng, packet: Packet): Uint8Array {
  const unusual = packet.type === "DATA" && !packet.emptyDatagram &&
    prng.below(4) === 0;
  return unusual
    ? outOfOrder(packet.connectId, packet.data)
    : encodePacket(packet);
}

/** DATA with the type behind the payload. */
function outOfOrder(connectId: Int64, data: Uint8Array): Uint8Array {
  const usual = encodePacket({ type: "DATA", connectId, data });
  return join([usual.subarray(2), usual.subarray(0, 2)]);
}

function randomPacket(prng: Prng): Packet {
  const connectId = prng.pick<Int64>([0, 1, 127, 128, 2 ** 40, 2n ** 60n, -1]);
  switch (prng.below(6)) {
    case 0:
      return {
        type: "DIAL_REQ",
        protocol: "tcp",
        address: "[::1]:1",
        random: 2n ** 61n,
      };
    case 1:
      return {
        type: "CLOSE_RSP",
        error: "e".repeat(prng.below(300)),
        connectId,
        reset: "",
      };
    case 2:
      return { type: "UNKNOWN", code: 99 };
    case 3:
      return {
        type: "DATA",
        connectId,
        data: new Uint8Array(0),
        emptyDatagram: true,
      };
    default:
      return {
        type: "DATA",
        connectId,
        data: prng.bytes(prng.pick([0, 1, 100, 2_000])),
      };
  }
}

function message(packet: Uint8Array): Uint8Array {
  return join([prefix(packet.length), packet]);
}

function prefix(messageBytes: number): Uint8Array {
  const bytes = new Uint8Array(5);
  new DataView(bytes.buffer).setUint32(1, messageBytes);
  return bytes;
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replaceAll(" ", ""));
}

Deno.test("a head in front of its payload is the whole message", async () => {
  await forAll(500, (prng) => {
    const data = prng.bytes(prng.pick([0, 1, 100, 127, 128, 5_000]));
    const connectId = canonicalInt64(
      BigInt.asIntN(64, 2n ** BigInt(prng.below(64)) - BigInt(prng.below(3))),
    );
    const head = writeDataHead(connectId, data.length).slice();
    const packet = encodePacket({ type: "DATA", connectId, data });
    assertEquals(
      [head.toHex() + data.toHex(), head.length],
      [
        "00" + packet.length.toString(16).padStart(8, "0") + packet.toHex(),
        dataHeadBytes(connectId, data.length),
      ],
    );
  });
});

Deno.test("no head is longer than the largest", () => {
  const head = writeDataHead(-1, 2 ** 32 - 64);
  assertEquals(head.length, DATA_HEAD_BYTES_MAX);
});

Deno.test("a frame is filled to its last byte", () => {
  for (const connectId of [0, 7, 300, 2n ** 62n] as Int64[]) {
    const fits = dataBytesThatFit(DATA_FRAME_BYTES, connectId);
    assertEquals(
      writeDataHead(connectId, fits).length + fits,
      DATA_FRAME_BYTES,
    );
  }
});

Deno.test("what fits never exceeds the frame, however small", () => {
  for (let frameBytes = 0; frameBytes < 20_000; frameBytes++) {
    const fits = dataBytesThatFit(frameBytes, 7);
    if (fits === 0) continue;
    const used = writeDataHead(7, fits).length + fits;
    assertEquals(used <= frameBytes && used >= frameBytes - 2, true);
  }
});

Deno.test("refuses a payload that fits no gRPC message", () => {
  assertThrows(() => writeDataHead(1, 2 ** 32), RangeError, "no gRPC message");
  assertThrows(() => writeDataHead(1, -1), RangeError, "no gRPC message");
});

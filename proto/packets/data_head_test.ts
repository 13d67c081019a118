import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  DATA_FRAME_BYTES,
  DATA_HEAD_BYTES_MAX,
  dataBytesThatFit,
  dataHeadBytes,
  writeDataHead,
} from "./data_head.ts";
import { canonicalInt64 } from "./int64.ts";
import { encodePacket } from "./packet_codec.ts";
import type { Int64 } from "./packet.ts";

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

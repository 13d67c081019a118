import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { decodePacket, encodePacket } from "../packets/packet_codec.ts";
import { connectionIdOf, dialIdOf, randomDialId } from "./dial_handler.ts";

Deno.test("dial ids are in [0, 2^63) and survive the wire to the bit", async () => {
  await forAll(200, (prng) => {
    const random = randomDialId((bytes) => bytes.set(prng.bytes(8)));
    assert(random >= 0 && BigInt(random) < 2n ** 63n);
    const packet = decodePacket(encodePacket({ type: "DIAL_CLS", random }));
    assertEquals(packet, { type: "DIAL_CLS", random });
  });
});

Deno.test("a dial id has one representation, so that it can be a key", () => {
  assertEquals(randomDialId((bytes) => bytes.fill(0)), 0);
  assertEquals(randomDialId((bytes) => bytes.fill(255)), 2n ** 63n - 1n);
  assertEquals(
    randomDialId((bytes) => {
      bytes.fill(255);
      bytes.set([0, 63]);
    }),
    Number.MAX_SAFE_INTEGER,
  );
});

Deno.test("a connection id is the same number in digits", async () => {
  await forAll(200, (prng) => {
    const id = prng.bytes(8).toHex();
    const random = dialIdOf(id);
    const packet = decodePacket(encodePacket({ type: "DIAL_CLS", random }));
    assertEquals(packet, { type: "DIAL_CLS", random });
    if (!id.startsWith("00000000")) assertEquals(connectionIdOf(random), id);
  });
  assertEquals(dialIdOf("ffffffffffffffff"), -1);
  assertEquals(connectionIdOf(-1), "ffffffffffffffff");
  // As the SPEC shows it.
  assertEquals(connectionIdOf(5577006791947779410n), "4d65822107fcfd52");
});

Deno.test("a count is no connection id", () => {
  for (const count of [0, 1, 2 ** 32 - 1]) {
    assertEquals(connectionIdOf(count), undefined);
  }
  assertEquals(connectionIdOf(2 ** 32), "0000000100000000");
});

import { assert, assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/prng.ts";
import { decodePacket, encodePacket } from "../packets/packet_codec.ts";
import { randomDialId } from "./dial_id.ts";

Deno.test("dial ids are in [0, 2^63) and survive the wire to the bit", async () => {
  await forAll(200, (prng) => {
    const random = randomDialId((octets) => octets.set(prng.octets(8)));
    assert(random >= 0 && BigInt(random) < 2n ** 63n);
    const packet = decodePacket(encodePacket({ type: "DIAL_CLS", random }));
    assertEquals(packet, { type: "DIAL_CLS", random });
  });
});

Deno.test("a dial id has one representation, so that it can be a key", () => {
  assertEquals(randomDialId((octets) => octets.fill(0)), 0);
  assertEquals(randomDialId((octets) => octets.fill(255)), 2n ** 63n - 1n);
  assertEquals(
    randomDialId((octets) => {
      octets.fill(255);
      octets.set([0, 63]);
    }),
    Number.MAX_SAFE_INTEGER,
  );
});

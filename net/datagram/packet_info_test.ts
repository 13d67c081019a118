import { assertEquals } from "@std/assert";
import { encodePacketInfo, PacketInfoReader } from "./packet_info.ts";

/** What the kernel would say of a datagram that came to `local`. */
function reported(local: string): string | undefined {
  const bytes = encodePacketInfo(local)!;
  return new PacketInfoReader(bytes).host(0, bytes.length);
}

Deno.test("an address survives, with its interface where it means something there only", () => {
  for (const local of ["127.0.0.5", "10.0.0.1", "::1", "fd00::7"]) {
    assertEquals(reported(local), local);
  }
  assertEquals(reported("fe80::1%3"), "fe80::1%3");
  assertEquals(reported("::ffff:127.0.0.5"), "127.0.0.5");
});

Deno.test("nobody answers from an address of many, nor from what is none", () => {
  assertEquals(reported("ff02::1"), undefined);
  assertEquals(encodePacketInfo("elsewhere"), undefined);
});

Deno.test("of two messages the one that says what to answer from counts", () => {
  const both = [encodePacketInfo("fd00::7")!, encodePacketInfo("10.0.0.1")!];
  const bytes = Uint8Array.from(both.flatMap((each) => [...each]));
  const reader = new PacketInfoReader(bytes);
  assertEquals(reader.host(0, bytes.length), "10.0.0.1");
  assertEquals(reader.host(0, 0), undefined);
  assertEquals(reader.host(0, 17), undefined, "cut off");
});

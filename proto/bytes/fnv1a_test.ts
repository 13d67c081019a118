import { assertEquals } from "@std/assert";
import { fnv1a } from "./fnv1a.ts";

// From the reference's list of 32-bit FNV-1a values.
for (
  const [text, hash] of [["", 0x811c9dc5], ["a", 0xe40c292c], [
    "foobar",
    0xbf9cf968,
  ]] as const
) {
  Deno.test(`fnv1a() of ${JSON.stringify(text)} is what others have`, () => {
    assertEquals(fnv1a(text), hash);
  });
}

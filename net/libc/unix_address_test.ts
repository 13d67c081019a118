import { assertEquals } from "@std/assert";
import { encodeUnixAddress } from "./unix_address.ts";

/** The path in an address, as the kernel would read it. */
function pathIn(address: Uint8Array | undefined): string | undefined {
  if (address === undefined) return undefined;
  assertEquals([address[0], address[1]], [1, 0], "AF_UNIX");
  assertEquals(address.at(-1), 0);
  return new TextDecoder().decode(address.subarray(2, -1));
}

Deno.test("a path is written as it is, in UTF-8", () => {
  for (const path of ["/run/tunnel.sock", "a", "./b", "/tmp/schlüssel-鍵"]) {
    assertEquals(pathIn(encodeUnixAddress(path)), path);
  }
});

Deno.test("what does not fit or would be cut off is refused, counted in bytes", () => {
  assertEquals(pathIn(encodeUnixAddress("x".repeat(107))), "x".repeat(107));
  assertEquals(encodeUnixAddress("x".repeat(108)), undefined);
  assertEquals(encodeUnixAddress("ü".repeat(54)), undefined);
  assertEquals(pathIn(encodeUnixAddress("ü".repeat(53))), "ü".repeat(53));
  for (const path of ["", "\0abstract", "/run/a\0b"]) {
    assertEquals(encodeUnixAddress(path), undefined);
  }
});

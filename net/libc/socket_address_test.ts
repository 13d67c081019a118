import { assertEquals } from "@std/assert";
import {
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
  writeSocketAddress,
} from "./socket_address.ts";

const HOSTS = [
  "127.0.0.1",
  "255.254.0.9",
  "::",
  "::1",
  "2001:db8::8:800:200c:417a",
  "fe80::1",
  "::ffff:1:2:3",
] as const;

Deno.test("an address that is written reads as the same one", () => {
  const bytes = new Uint8Array(HOSTS.length * SOCKET_ADDRESS_BYTES);
  const at = (index: number) => index * SOCKET_ADDRESS_BYTES;
  for (const [index, hostname] of HOSTS.entries()) {
    const written = encodeSocketAddress({ hostname, port: 0x1234 + index })!;
    bytes.set(written, at(index));
  }
  const reader = new SocketAddressReader(bytes);
  for (const [index, hostname] of HOSTS.entries()) {
    // Twice, because the last one is remembered.
    assertEquals(reader.host(at(index)), hostname);
    assertEquals(reader.host(at(index)), hostname);
    assertEquals(reader.port(at(index)), 0x1234 + index);
  }
});

Deno.test("an address is laid out as the kernel wants it", () => {
  // deno-fmt-ignore: as in `struct sockaddr_in`.
  assertEquals(
    encodeSocketAddress({ hostname: "10.0.0.7", port: 53 }),
    Uint8Array.of(2, 0,  0, 53,  10, 0, 0, 7,  0, 0, 0, 0, 0, 0, 0, 0),
  );
  const ipv6 = encodeSocketAddress({ hostname: "::1", port: 0xff01 })!;
  assertEquals([...ipv6.subarray(0, 4)], [10, 0, 0xff, 1]);
  assertEquals([ipv6.length, ipv6[23]], [28, 1]);
});

Deno.test("whatever was written before, an address is the same", () => {
  const into = new Uint8Array(SOCKET_ADDRESS_BYTES);
  const written = (hostname: string, port: number) =>
    into.slice(0, writeSocketAddress(into, { hostname, port }));
  // More than are remembered, and each of them again.
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 600; index++) {
      const byte = index % 200;
      assertEquals(
        written(`10.1.${Math.floor(index / 200)}.${byte}`, index),
        // deno-fmt-ignore: as in `struct sockaddr_in`.
        Uint8Array.of(
          2, 0,  index >> 8, index & 0xff,  10, 1, Math.floor(index / 200), byte,
          0, 0, 0, 0, 0, 0, 0, 0,
        ),
      );
      const ipv6 = written(`fd00::${byte}`, 53);
      assertEquals([...ipv6.subarray(0, 10)], [
        10,
        0,
        0,
        53,
        0,
        0,
        0,
        0,
        0xfd,
        0,
      ]);
      assertEquals([...ipv6.subarray(24)], [0, 0, 0, 0]);
    }
  }
  assertEquals(
    writeSocketAddress(into, { hostname: "a.b", port: 1 }),
    undefined,
  );
});

Deno.test("an IPv4 host that is written as IPv6 is sent to over IPv4", () => {
  assertEquals(
    encodeSocketAddress({ hostname: "::ffff:10.0.0.7", port: 53 }),
    encodeSocketAddress({ hostname: "10.0.0.7", port: 53 }),
  );
});

Deno.test("what is no IP address cannot be written or read", () => {
  for (const hostname of ["localhost", "fe80::1%eth0", ""]) {
    assertEquals(encodeSocketAddress({ hostname, port: 1 }), undefined);
  }
  const unix = new Uint8Array(SOCKET_ADDRESS_BYTES);
  unix[0] = 1;
  assertEquals(new SocketAddressReader(unix).host(0), undefined);
});

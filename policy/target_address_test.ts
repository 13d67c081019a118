import { assertEquals, assertThrows } from "@std/assert";
import { DialError } from "../proto/peer/dial_error.ts";
import { splitAddress } from "./target_address.ts";

for (
  const [protocol, address, host, port] of [
    ["tcp", "10.0.0.7:443", "10.0.0.7", 443],
    ["tcp", "[fd00::7]:443", "fd00::7", 443],
    ["tcp", "127.0.0.1:http", "127.0.0.1", 80],
    ["tcp", "name:HTTPS", "name", 443],
    ["udp", "10.0.0.7:domain", "10.0.0.7", 53],
  ] as const
) {
  Deno.test(`${protocol} ${address} is ${host} and ${port}`, () => {
    assertEquals(splitAddress({ protocol, address }), { host, port });
  });
}

Deno.test("an address with what nobody sees is none", () => {
  for (
    const unseen of [
      "\0",
      "\x9b",
      "\u200b",
      "\u00ad",
      "\u202e",
      "\ufe0f",
      "\u2028",
    ]
  ) {
    const address = `loc${unseen}alhost:80`;
    assertThrows(
      () => splitAddress({ protocol: "tcp", address }),
      DialError,
      "it has invisible characters",
    );
  }
});

import { assertEquals } from "@std/assert";
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

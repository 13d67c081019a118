import { assertEquals } from "@std/assert";
import { sourceAddress } from "../libc/sockets.ts";
import { orderAddresses } from "./dns_lookup.ts";

Deno.test("addresses that cannot be reached come last", () => {
  const sources: Record<string, string | undefined> = {
    "2001:db8::1": undefined,
    "192.0.2.1": "198.51.100.7",
  };
  const order = orderAddresses(
    ["2001:db8::1", "192.0.2.1"],
    (address) => sources[address],
  );
  assertEquals(order, ["192.0.2.1", "2001:db8::1"]);
});

Deno.test("addresses that are nearest to ours come first, as RFC 6724 has it", () => {
  const order = (sources: Readonly<Record<string, string>>) =>
    orderAddresses(Object.keys(sources), (address) => sources[address]);
  // §10.2: a global address of ours prefers the global one of theirs.
  assertEquals(
    order({
      "198.51.100.121": "198.51.100.117",
      "2001:db8:1::1": "2001:db8::2",
    }),
    ["2001:db8:1::1", "198.51.100.121"],
  );
  // A private IPv6 address of ours is no path to a global one.
  assertEquals(
    order({ "2001:db8:1::1": "fd00::2", "198.51.100.121": "10.0.0.4" }),
    ["198.51.100.121", "2001:db8:1::1"],
  );
  assertEquals(
    order({
      "198.51.100.121": "169.254.13.78",
      "2001:db8:1::1": "2001:db8::2",
    }),
    ["2001:db8:1::1", "198.51.100.121"],
  );
  assertEquals(order({ "10.0.0.2": "10.0.0.1", "10.0.0.1": "10.0.0.1" }), [
    "10.0.0.2",
    "10.0.0.1",
  ]);
});

Deno.test("loopback is reached from loopback", () => {
  const source = sourceAddress("127.0.0.1");
  assertEquals(source === "unknown" ? "127.0.0.1" : source, "127.0.0.1");
});

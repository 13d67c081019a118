import { assertEquals } from "@std/assert";
import { lineKey } from "./line_key.ts";

Deno.test("lines about one address have one key, others their own", () => {
  const of = (address: string) =>
    lineKey(`Cannot accept TLS from ${address}: no`);
  assertEquals(of("10.0.0.7:4711"), of("10.0.0.7:4712"));
  assertEquals(of("[fe80::1]:4711"), of("[fe80::1]:4712"));
  assertEquals(of("10.0.0.7:4711") === of("10.0.0.8:4711"), false);
  assertEquals(of("10.0.0.7:4711"), "Cannot accept TLS from 10.0.0.7: no");
  assertEquals(
    lineKey("gone; trying again in 71 ms"),
    lineKey("gone; trying again in 1.5 s"),
  );
  assertEquals(of("[fe80::1]:1") === of("[fe80::2]:1"), false);
});

import { assertEquals } from "@std/assert";
import { proxyKeepsNothing } from "./tunnel.ts";

Deno.test("a proxy under test keeps nothing where the machine's own one does", () => {
  assertEquals(proxyKeepsNothing(["proxy", "--config=a"]), [
    "--address-file=none",
    "--catalog-copies=none",
  ]);
  const kept = ["proxy", "--discovery=a:1", "--address-file=/kept"];
  assertEquals(proxyKeepsNothing(kept), [
    "--catalog-copies=none",
    "--discovery-state=none",
  ]);
});

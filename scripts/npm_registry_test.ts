import { assertEquals } from "@std/assert";
import { hasIntegrity, newestUpTo } from "./npm_registry.ts";

Deno.test("newestUpTo() takes the version or an older patch of it", () => {
  const versions = ["2.9.4", "2.9.5", "2.9.10", "2.10.0", "3.0.0-rc.1"];
  assertEquals(newestUpTo("2.9.5", versions), "2.9.5");
  assertEquals(newestUpTo("2.9.6", versions), "2.9.5");
  assertEquals(newestUpTo("2.9.12", versions), "2.9.10");
  assertEquals(newestUpTo("2.8.0", versions), undefined);
});

Deno.test("hasIntegrity() believes a matching SHA-512 and nothing else", async () => {
  const empty = new Uint8Array();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-512", empty));
  const integrity = `sha512-${hash.toBase64()}`;
  assertEquals(await hasIntegrity(empty, integrity), true);
  assertEquals(await hasIntegrity(new Uint8Array(1), integrity), false);
  assertEquals(await hasIntegrity(empty, `sha1-${hash.toBase64()}`), false);
});

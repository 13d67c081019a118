import { assertEquals } from "@std/assert";
import { ourCommand } from "./tunnel.ts";

const flagsOf = (...words: readonly string[]) =>
  ourCommand(...words).filter((word) => /=none$|=\/kept$/.test(word)).sort();

Deno.test("a proxy under test keeps nothing where the machine's own one does", () => {
  assertEquals(flagsOf("proxy", "--config=a"), [
    "--address-file=none",
    "--catalog-copies=none",
  ]);
  assertEquals(
    flagsOf("proxy", "--discovery=a:1", "--address-file=/kept"),
    ["--address-file=/kept", "--catalog-copies=none", "--discovery-state=none"],
  );
  assertEquals(flagsOf("agent", "--server=a:1"), []);
});

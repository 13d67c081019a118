import { assertEquals, assertStringIncludes } from "@std/assert";
import { launcherScript } from "./launcher.ts";

const PARTS = {
  version: "1.2.3",
  machine: "x86_64",
  runtime: { hash: "aaaa", compressedOctets: 40_000_000 },
  program: { hash: "bbbb", compressedOctets: 1234 },
  runFlags: ["--quiet"],
} as const;

Deno.test("the launcher knows where it ends and its files begin", () => {
  const script = launcherScript(PARTS);
  const { length } = new TextEncoder().encode(script);
  assertStringIncludes(
    script,
    `unpack "$folder/deno-aaaa" ${length} 40000000\n` +
      `unpack "$folder/tunnel-bbbb.js" ${length + 40_000_000} 1234\n`,
  );
});

Deno.test("the launcher ends with a newline that nothing follows", () => {
  // What stands behind the script is not text: the shell must have left by then.
  assertEquals(launcherScript(PARTS).endsWith('"$@"\n'), true);
});

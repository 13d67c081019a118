import { assertEquals } from "@std/assert";
import { typescriptFiles } from "../../../scripts/project_files.ts";
import { wordsFor } from "./program.ts";
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

/** They read, bundle or write about it. */
const MAY_NAME_IT = [
  "cli/program/last_line_slow_test.ts",
  "scripts/check_layers_test.ts",
  "scripts/tidy_test.ts",
  "tests/support/program/packaged_file.ts",
  "tests/support/program/program.ts",
  "tests/support/program/program_test.ts",
];

Deno.test("no test starts the sources but by the one place that decides", async () => {
  const tests = (await typescriptFiles()).filter((path) =>
    path.startsWith("tests/") || path.endsWith("_test.ts")
  );
  const naming: string[] = [];
  for (const path of tests) {
    const text = await Deno.readTextFile(path);
    if (/\bmain\.ts\b/.test(text)) naming.push(path);
  }
  assertEquals(naming.sort(), MAY_NAME_IT);
});

Deno.test("what TUNNEL_PROGRAM names is started, wherever from", () => {
  assertEquals(wordsFor("README.md"), [Deno.realPathSync("README.md")]);
  assertEquals(wordsFor("source").at(-1), Deno.realPathSync("main.ts"));
});

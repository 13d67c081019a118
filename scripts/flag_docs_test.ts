import { assert } from "@std/assert";
import { FLAG_PAGE, flagPage } from "./flag_docs.ts";

Deno.test("docs/reference/flags.md says what the flag tables say", async () => {
  const isCurrent = await Deno.readTextFile(FLAG_PAGE) === await flagPage();
  assert(
    isCurrent,
    "Run: deno task reference",
  );
});

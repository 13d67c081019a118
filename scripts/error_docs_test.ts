import { assert } from "@std/assert";
import { ERROR_PAGE, errorPage } from "./error_docs.ts";

Deno.test("docs/reference/errors.md says what the table of codes says", async () => {
  const isCurrent = await Deno.readTextFile(ERROR_PAGE) === errorPage();
  assert(
    isCurrent,
    "Run: deno task reference",
  );
});

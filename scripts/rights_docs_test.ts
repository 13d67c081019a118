import { assert } from "@std/assert";
import { SECURITY_PAGE, withRights } from "./rights_docs.ts";

Deno.test("docs/security.md says what commands may ask the platform for", async () => {
  const page = await Deno.readTextFile(SECURITY_PAGE);
  assert(
    page === await withRights(page),
    "Run: deno task reference",
  );
});

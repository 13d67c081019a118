import { assertEquals } from "@std/assert";
import { GOLDEN_AUDIENCES, goldenFile, goldenText } from "./discovery.ts";

for (const name of Object.keys(GOLDEN_AUDIENCES)) {
  Deno.test(`clients are told what golden/discovery/${name} says`, async () => {
    const text = await goldenText(name);
    // Wrong? Then say so with `discovery.ts --update`, and read the diff.
    assertEquals(text, await Deno.readTextFile(goldenFile(name)));
  });
}

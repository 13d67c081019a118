import { assertEquals } from "@std/assert";
import {
  GOLDEN_AUDIENCES,
  goldenFile,
  goldenText,
  goldenViews,
} from "./discovery.ts";

for (const [name, group] of Object.entries(GOLDEN_AUDIENCES)) {
  Deno.test(`clients are told what golden/discovery/${name} says`, async () => {
    const text = goldenText(await goldenViews(), group);
    // Wrong? Then say so with `discovery.ts --update`, and read the diff.
    assertEquals(text, await Deno.readTextFile(goldenFile(name)));
  });
}

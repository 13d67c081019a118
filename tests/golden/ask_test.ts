import { assert, assertEquals } from "@std/assert";
import { pageOf } from "../../admin/ask/page.ts";
import { columnsOf } from "../../platform/text/columns.ts";
import { GOLDEN_TEXTS, GOLDEN_WIDTHS, goldenFile, goldenPage } from "./ask.ts";

// deno-lint-ignore no-control-regex
const COLOURS = /\x1b\[[0-9;]*m/g;

for (const [name, textOf] of Object.entries(GOLDEN_TEXTS)) {
  for (const columns of GOLDEN_WIDTHS) {
    Deno.test(`people see what golden/ask/${name}_${columns}.txt says`, async () => {
      const text = textOf(goldenPage(columns));
      // Wrong? Then say so with `ask.ts --update`, and read the diff.
      assertEquals(text, await Deno.readTextFile(goldenFile(name, columns)));
    });
  }

  Deno.test(`${name} fits terminals of 40 columns and more, in colour, too`, () => {
    for (let columns = 40; columns < 220; columns++) {
      const page = pageOf({
        terminal: () => ({ columns, rows: 24 }),
        environment: () => undefined,
      });
      const text = textOf(page);
      const bare = text.replaceAll(COLOURS, "");
      for (const line of bare.split("\n")) {
        assert(columnsOf(line) <= columns, `${columns}: ${line}`);
      }
      assertEquals(bare.includes("\x1b"), false);
    }
  });

  Deno.test(`names in ${name} do not speak to the terminal`, () => {
    // deno-lint-ignore no-control-regex
    const spoken = /[\x00-\x09\x0b-\x1f\x7f\u202e]/;
    assertEquals(spoken.exec(textOf(goldenPage(200))), null);
  });
}

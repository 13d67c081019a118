import { assert, assertEquals } from "@std/assert";
import { NOT_RUN } from "./not_run.ts";
import { commandLines, linesOf } from "./page_lines.ts";
import { PAGE_SCRIPTS } from "./page_scripts.ts";

Deno.test("each command line of the documents is run, or says why not", () => {
  const lines = commandLines();
  assert(lines.length > 40, `only ${lines.length} lines were found`);
  const forgotten = lines.filter(({ page, text }) =>
    PAGE_SCRIPTS[page] === undefined && !NOT_RUN.has(`${page}: ${text}`)
  );
  assertEquals(forgotten, [], "write a script in tests/docs for this page");
  const known = new Set(lines.map(({ page, text }) => `${page}: ${text}`));
  for (const [line, reason] of NOT_RUN) {
    assert(known.has(line), `no page has this line any more: ${line}`);
    assert(reason.length > 20, `no reason for: ${line}`);
  }
  const pages = new Set(lines.map(({ page }) => page));
  assertEquals(Object.keys(PAGE_SCRIPTS).filter((it) => !pages.has(it)), []);
});

Deno.test("the lines that are not run are counted: all are", () => {
  assertEquals(NOT_RUN.size, 0);
});

Deno.test("a command line is one of a block, with what continues it", () => {
  const found = linesOf(
    "x.md",
    `tunnel prose
\`\`\`sh
# tunnel comment
tunnel server   # one
ssh -o ProxyCommand='tunnel dial %h:%p' a
tunnel agent \\
  --node a
curl x \\
  tunnel y
\`\`\`
text
\`\`\`
server$ tunnel token create
tunnel agent --join x
node$   tunnel agent
$ other
seen
\`\`\`

    tunnel doctor   what it is
`,
  );
  assertEquals(
    found.map(({ number, text, answer }) => [number, text, answer]),
    [
      [4, "tunnel server   # one", ""],
      [6, "tunnel agent \\\n  --node a", ""],
      [13, "tunnel token create", "tunnel agent --join x\n"],
      [15, "tunnel agent", ""],
      [20, "tunnel doctor   what it is", ""],
    ],
  );
});

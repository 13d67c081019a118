import { assert, assertEquals } from "@std/assert";
import { COMMANDS } from "../../cli/commands.ts";
import { QUESTIONS, RECORDINGS } from "./recordings.ts";
import { plain, terminalSvg, textOf } from "./terminal_svg.ts";

/** What a page may weigh, four times. */
const BYTES_MAX = 40_000;

/** Where headings and sections are written. */
const FOLDERS = ["view", "ask"].map((name) =>
  new URL(`../../admin/${name}/`, import.meta.url)
);

async function sources(): Promise<string> {
  let text = "";
  for (const folder of FOLDERS) {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      if (isFile && !name.endsWith("_test.ts")) {
        text += await Deno.readTextFile(new URL(name, folder));
      }
    }
  }
  return text;
}

for (const { file, title, answer } of QUESTIONS) {
  Deno.test(`the recording "${title}" shows what the program still shows`, async () => {
    const svg = await Deno.readTextFile(new URL(file, RECORDINGS));
    assert(svg.length < BYTES_MAX);
    assert(svg.includes(`<title>${title}</title>`));
    const lines = textOf(svg);
    assert(lines.some((line) => answer.test(line)), "the answer");
    const code = await sources();
    const headings = lines.filter((line) => /^\s+[A-Z]{2}[A-Z ]*$/.test(line))
      .flatMap((line) => line.trim().split(/\s{2,}/));
    assert(headings.length >= 8, "tables");
    // Two words with one blank between them are one heading, or two.
    const known = new Set(
      [...code.matchAll(/(?:heading:|column\(|numbers\()\s*"([^"]+)"/g)]
        .map(([, heading]) => heading!),
    );
    assertEquals(headings.filter((each) => !known.has(each)), []);
    const sections = lines.filter((line) => /^[A-Z][a-z]+ /.test(line))
      .map((line) => line.split(" ")[0]!).filter((word) => word !== "Nothing");
    for (const section of sections) {
      assert(code.includes(`"${section}"`), section);
    }
  });
}

Deno.test("docs/troubleshooting.md names commands that there are", async () => {
  const page = await Deno.readTextFile(
    new URL("../../docs/troubleshooting.md", import.meta.url),
  );
  const names = [...page.matchAll(/`(?:man )?tunnel[ -]([a-z][a-z-]*)/g)]
    .map(([, name]) => name!);
  assert(names.length > 15);
  assertEquals(
    names.filter((name) => name !== "help" && !(name in COMMANDS)),
    [],
  );
});

Deno.test("a drawing has the words and the colours, and nothing that acts", () => {
  const svg = terminalSvg({
    title: "a <b>",
    command: "tunnel status",
    output: "\x1b[1;31mgone\x1b[0m & <script>x</script>\r\nnext\r\n",
    isAnswer: (line) => line === "next",
  });
  assertEquals(textOf(svg), [
    "$ tunnel status",
    "gone & <script>x</script>",
    "next",
  ]);
  assert(svg.includes('<tspan class="b r">gone</tspan>'));
  assert(!svg.includes("<script"));
  assertEquals(svg.match(/class="a"/g)?.length, 1);
  assertEquals(plain("\x1b[1;31mgone\x1b[0m"), "gone");
});

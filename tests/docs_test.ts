import { assert, assertEquals, assertStringIncludes } from "@std/assert";

// Documents are checked like code: what they name must be there.

const ROOT = new URL("../", import.meta.url);

const read = (path: string) => Deno.readTextFileSync(new URL(path, ROOT));

/** In which what documents name must be. */
const FOLDERS = [
  ...[
    "std",
    "proto",
    "platform",
    "policy",
    "net",
    "neighbours",
    "services",
  ],
  ...[
    "client",
    "server",
    "agent",
    "admin",
    "cli",
    "tests",
    "lab",
    "scripts",
    "docs",
  ],
  "deploy",
];

/** Every Markdown file that people read, from the root. */
const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "proto/SPEC.md",
  "tests/README.md",
  "CONTRIBUTING.md",
  ...[...Deno.readDirSync(new URL("docs/", ROOT))]
    .filter(({ name }) => name.endsWith(".md"))
    .map(({ name }) => `docs/${name}`),
  ...[...Deno.readDirSync(new URL("docs/reference/", ROOT))]
    .map(({ name }) => `docs/reference/${name}`),
];

for (const page of PAGES) {
  Deno.test(`${page} links to files and headings that exist`, () => {
    const links = read(page).matchAll(/\]\(([^)\s]+)\)/g);
    for (const [, link] of links) {
      if (/^https?:/.test(link!)) continue;
      const [path, heading] = link!.split("#");
      const target = path === "" ? new URL(page, ROOT) : new URL(
        path!,
        new URL(page, ROOT),
      );
      const text = Deno.statSync(target).isFile
        ? Deno.readTextFileSync(target)
        : "";
      if (heading === undefined) continue;
      const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
        title!.toLowerCase().replace(/[^\p{L}\p{N} -]/gu, "")
          .replaceAll(" ", "-")
      );
      assert(headings.includes(heading), `${link}: no such heading`);
    }
  });

  Deno.test(`${page} names files of the project that exist`, () => {
    const named = read(page).matchAll(
      new RegExp("`((?:" + FOLDERS.join("|") + ")/[\\w./-]+)`", "g"),
    );
    for (const [, path] of named) {
      const plain = path!.replace(/\/$/, "");
      const found = [plain, `${plain}.ts`].some((candidate) => {
        try {
          return Deno.statSync(new URL(candidate, ROOT)) !== undefined;
        } catch {
          return false;
        }
      });
      assert(found, `${path} is not there`);
    }
  });
}

Deno.test("README's two commands are the tasks that exist", () => {
  const { tasks } = JSON.parse(read("deno.json"));
  const commands = [
    ...read("README.md").matchAll(
      /^npx -y deno@[\d.]+ task (\w+)$/gm,
    ),
  ].map(([, task]) => task!);
  assertEquals(commands, ["demo", "test"]);
  for (const task of commands) assert(task in tasks);
});

Deno.test("README names the commands that the program has", async () => {
  const { COMMANDS } = await import("../cli/commands.ts");
  const readme = read("README.md");
  for (const name of ["server", "agent", "dial", "forward"]) {
    assert(name in COMMANDS);
    assertStringIncludes(readme, `tunnel ${name}`);
  }
});

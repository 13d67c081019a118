import { assertEquals } from "@std/assert";
import { manPages } from "./man_pages.ts";

async function said(
  program: string,
  ...args: string[]
): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await new Deno.Command(program, {
      args,
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    return decoder.decode(stdout) + decoder.decode(stderr);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

const HAS_MANDOC = await said("mandoc", "-T", "lint", "/dev/null") !==
  undefined;

Deno.test({
  name: "mandoc has no word against any page (apt-get install mandoc)",
  ignore: !HAS_MANDOC,
  async fn() {
    const directory = await Deno.makeTempDir();
    try {
      const pages = await manPages();
      const paths = await Promise.all(
        [...pages].map(async ([name, text]) => {
          await Deno.writeTextFile(`${directory}/${name}`, text);
          return `${directory}/${name}`;
        }),
      );
      // Style is about lines of source, which nobody reads here.
      assertEquals(
        await said("mandoc", "-T", "lint", "-W", "warning", ...paths),
        "",
      );
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});

import { assertEquals } from "@std/assert";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { run } from "./run.ts";
import { ran } from "../tests/support/program/command_line.ts";

const TOKEN = `tnl1.${"A".repeat(43)}.abcdefg234.${"s".repeat(22)}`;

/** @returns The exit code, and what was said. */
async function join(
  ...argv: readonly string[]
): Promise<[code: number, text: string]> {
  const { code, output, errors } = await ran(run, ["join", ...argv]);
  return [code, output + errors];
}

Deno.test("tunnel join says what is missing, and never the token", async () => {
  for (
    const [argv, words] of [
      [[], "wanted one token"],
      [[TOKEN, "more", "--server=a:1"], "wanted one token"],
      [[TOKEN], "--server is not given"],
      [[TOKEN, "--server=https://a:1"], "wanted HOST:PORT"],
      [["--join-file=/none", "--server=a:1"], "Cannot use --join-file /none"],
      [[TOKEN.slice(0, -1), "--server=a:1"], "was the line cut?"],
      [[TOKEN, "--server=a:1", "--node=A B"], "Cannot use --node"],
    ] as const
  ) {
    const [code, text] = await join(...argv);
    assertEquals(code, 2, text);
    assertEquals(text.includes(words), true, text);
    assertEquals(text.trim().split("\n").length, 1);
    assertEquals(text.includes("s".repeat(21)), false, text);
  }
});

Deno.test("tunnel join does not replace an identity unasked", () =>
  inMemoryFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/node.json`, "{}");
    const [code, text] = await join(
      TOKEN,
      "--server=a:1",
      "--node=edge-7",
      `--state-dir=${folder}`,
    );
    assertEquals(code, 1);
    assertEquals(text.includes("holds an identity already"), true, text);
  }));

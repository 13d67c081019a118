// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Writes `dist/man/*.1` and `dist/completion/*` from the tables of commands and
 * flags: `deno task man [--out dist]`. The package brings them too.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { allCommands } from "../cli/commands.ts";
import { bashScript, zshScript } from "../cli/reference/case_scripts.ts";
import { commandWords } from "../cli/reference/command_words.ts";
import { fishScript } from "../cli/reference/completion.ts";
import { commandPage, overviewPage } from "../cli/reference/man.ts";

/** All of them by file name, as man(1) looks for them. */
export async function manPages(): Promise<ReadonlyMap<string, string>> {
  const commands = (await allCommands()).filter(({ isHidden }) => !isHidden);
  return new Map([
    ["tunnel.1", overviewPage(commands)],
    ...commands.map((command) =>
      [`tunnel-${command.name}.1`, commandPage(command)] as const
    ),
  ]);
}

/** By the names under which each shell looks for them. */
export async function completionScripts(): Promise<
  ReadonlyMap<string, string>
> {
  const words = commandWords(await allCommands());
  return new Map([
    ["tunnel.bash", bashScript(words)],
    ["_tunnel", zshScript(words)],
    ["tunnel.fish", fishScript(words)],
  ]);
}

/** @returns How many files there are. */
export async function writeReference(directory: string): Promise<number> {
  const folders = [
    ["man", await manPages()],
    ["completion", await completionScripts()],
  ] as const;
  let count = 0;
  for (const [folder, files] of folders) {
    await Deno.mkdir(`${directory}/${folder}`, { recursive: true });
    for (const [name, text] of files) {
      await Deno.writeTextFile(`${directory}/${folder}/${name}`, text);
      count++;
    }
  }
  return count;
}

if (import.meta.main) {
  const { out = "dist" } = parseArgs(Deno.args, { string: ["out"] });
  const count = await writeReference(String(out));
  console.log(`${out}/man, ${out}/completion (${count} files)`);
}

/**
 * Which program is started wherever a test starts `tunnel` as a process: the one
 * place that decides.
 *
 * It is the packaged file, since that is what people download: with the rights
 * of each command, in one module, behind its launcher. `TUNNEL_PROGRAM` names
 * another one: a path, or `source` for the inner loop, where nothing is built
 * and every command has the rights of all.
 *
 * @module
 */

import { RIGHTS, V8_FLAGS } from "../../../cli/program/rights.ts";
import { packagedFile, ROOT } from "./packaged_file.ts";

const VARIABLE = "TUNNEL_PROGRAM";

/** In {@linkcode VARIABLE}: what lies in the working tree, not packaged. */
const SOURCE = "source";

/** The words before a subcommand: the path of a file, or more of them. */
export function programWords(): readonly [string, ...string[]] {
  const chosen = Deno.env.get(VARIABLE) ?? "";
  const words = wordsFor(chosen);
  // One run tests one program, in all its processes and whatever is edited
  // meanwhile.
  if (chosen === "") Deno.env.set(VARIABLE, words[0]);
  return words;
}

/** @param chosen As the variable says it; empty if nothing was chosen. */
export function wordsFor(chosen: string): readonly [string, ...string[]] {
  if (chosen === SOURCE) return sourceWords();
  // Whole, since some start it in a folder of its own.
  return [chosen === "" ? packagedFile() : Deno.realPathSync(chosen)];
}

function sourceWords(): [string, ...string[]] {
  return [
    Deno.execPath(),
    ...["run", "--quiet", "--no-prompt", V8_FLAGS, ...RIGHTS.programs],
    ...[`--config=${ROOT}deno.json`, `${ROOT}main.ts`],
  ];
}

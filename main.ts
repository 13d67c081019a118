/**
 * The program: words to a command, its answer to the exit code.
 *
 * Where things are: `cli/` knows the words, `server/`, `agent/` and `client/`
 * do the work, `ARCHITECTURE.md` shows the way.
 *
 * @module
 */

import {
  endWithOneLine,
  processContext,
} from "./cli/program/process_context.ts";
import { run } from "./cli/run.ts";

/** For what stands before it, too: the script of an image, which has no shell. */
export async function main(): Promise<never> {
  endWithOneLine();
  // Exit, because a read of standard input may still be waiting for a person.
  Deno.exit(await run(processContext(Deno.args)));
}

if (import.meta.main) await main();

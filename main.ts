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
import { OWN_FILE, RELOADING } from "./cli/program/rights.ts";
import { run } from "./cli/run.ts";

/** For what stands before it, too: the script of an image, which has no shell. */
export async function main(): Promise<never> {
  endWithOneLine();
  const [command = ""] = Deno.args;
  // It may come while the command is loaded. The launcher ignores it, and what
  // this process starts inherits that: not so a listener.
  if (RELOADING.includes(command) && !Deno.env.get(OWN_FILE)) {
    Deno.addSignalListener("SIGHUP", () => {});
  }
  // Exit, because a read of standard input may still be waiting for a person.
  Deno.exit(await run(processContext(Deno.args)));
}

if (import.meta.main) await main();

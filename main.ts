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

if (import.meta.main) {
  endWithOneLine();
  // Exit, because a read of standard input may still be waiting for a person.
  Deno.exit(await run(processContext(Deno.args)));
}

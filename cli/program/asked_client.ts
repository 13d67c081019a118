/**
 * Asks a running program for somebody at a terminal, who is told when it takes
 * long because the program stands still.
 *
 * @module
 */

import { type AdminClient, adminClient } from "../../admin/ask/admin_client.ts";
import type { AskedProgram } from "../flags/admin_flags.ts";
import type { CommandContext } from "./command.ts";

/** See the module description. */
export function askedClient(
  { program, address }: AskedProgram,
  { printError }: Pick<CommandContext, "printError">,
): AdminClient {
  return adminClient(program, address, {
    onWaiting: (line) => printError(`${line}\n`),
  });
}

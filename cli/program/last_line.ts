/**
 * How a command ends after an unexpected error: with one line, and not with code
 * 0. Commands that must keep running handle such errors themselves
 * (`surviveInternalErrors`) and continue.
 *
 * @module
 */

import { hasInternalErrorListener } from "../../platform/errors/internal_errors.ts";
import { asFaultOfOurs } from "../../platform/errors/missing_right.ts";
import { surviveInternalErrors } from "../../platform/log/internal_error_log.ts";
import type { CommandContext } from "./command.ts";
import { ExitCode } from "./exit_codes.ts";

/** For `main.ts`, once. */
export function endWithOneLine(): void {
  const end = (event: Event, error: unknown) => {
    if (hasInternalErrorListener()) return;
    event.preventDefault();
    Deno.stderr.writeSync(new TextEncoder().encode(`${lastLine(error)}\n`));
    Deno.exit(ExitCode.FAILURE);
  };
  addEventListener("error", (event) => end(event, event.error));
  addEventListener("unhandledrejection", (event) => end(event, event.reason));
}

/** The error, and where in the program it came from. */
export function lastLine(error: unknown): string {
  if (!(error instanceof Error)) {
    return `tunnel: internal error, please report it: ${String(error)}`;
  }
  const [place = ""] = /^ +at .*$/m.exec(error.stack ?? "") ?? [];
  const words = `${error.name}: ${error.message} (${place.trim()})`;
  return `tunnel: internal error, please report it: ` +
    asFaultOfOurs(words.replaceAll(/\s+/g, " "));
}

/** Reports such errors and continues: for commands without a log. */
export function sayInternalErrors(
  command: string,
  { printError }: Pick<CommandContext, "printError">,
): Disposable {
  return surviveInternalErrors({
    error: (message, { stack = "" }) =>
      printError(`tunnel ${command}: ${message}\n${stack}\n`),
  });
}

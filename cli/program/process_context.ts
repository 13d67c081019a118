/**
 * The real process: the parts that commands use, and its end after an
 * unexpected error, with one line and a code that is not 0. Commands that must
 * keep running handle such errors themselves (`surviveInternalErrors`) and
 * continue.
 *
 * @module
 */

import type { CommandContext } from "./command.ts";
import { hasInternalErrorListener } from "../../platform/errors/internal_errors.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { asFaultOfOurs } from "../../platform/errors/missing_right.ts";
import type { Log } from "../../platform/log/log.ts";
import { ExitCode, failure } from "./exit_codes.ts";

const ENCODER = new TextEncoder();

/** For `main.ts`; tests make their own. */
export function processContext(argv: readonly string[]): CommandContext {
  let isRead = true;
  return {
    argv,
    environment: (name) => Deno.env.get(name),
    environmentNames: () => Object.keys(Deno.env.toObject()),
    readFile: (path) => Deno.readTextFileSync(path),
    print: (text) => {
      isRead &&= writeAll(Deno.stdout, text);
    },
    printError: (text) => void writeAll(Deno.stderr, text),
    isRead: () => isRead,
    ...Deno.stdin.isTerminal() && Deno.stdout.isTerminal()
      ? { confirm: (question: string) => confirm(question) }
      : {},
    terminal: () =>
      Deno.stdout.isTerminal() && Deno.env.get("TERM") !== "dumb"
        ? Deno.consoleSize()
        : undefined,
  };
}

/** @returns Whether the stream may still have a reader. */
function writeAll(
  stream: { writeSync(bytes: Uint8Array): number },
  text: string,
): boolean {
  let bytes = ENCODER.encode(text);
  try {
    while (bytes.length > 0) {
      bytes = bytes.subarray(stream.writeSync(bytes));
    }
  } catch (error) {
    // `tunnel help | head` closes the pipe early, and reads nothing more.
    if (error instanceof Deno.errors.BrokenPipe) return false;
    if (stream !== Deno.stdout) throw error;
    throw failure(`Cannot write to standard output: ${messageOf(error)}`);
  }
  return true;
}

/** For `main.ts`, once. */
export function endWithOneLine(): void {
  const end = (event: Event, error: unknown) => {
    if (hasInternalErrorListener()) return;
    event.preventDefault();
    writeAll(Deno.stderr, `${lastLine(error)}\n`);
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

/** The log of a command that has no flags for one: a line for what people see. */
export function spokenLog(
  command: string,
  { printError }: Pick<CommandContext, "printError">,
): Log {
  const say = (message: string) =>
    printError(`tunnel ${command}: ${message}\n`);
  return {
    error: (message, { stack }) =>
      say(stack === undefined ? message : `${message}\n${stack}`),
    ...{ warn: say, event: say },
    ...{ info() {}, detail() {}, packet() {} },
    ...{ wantsDetails: false, wantsPackets: false },
  };
}

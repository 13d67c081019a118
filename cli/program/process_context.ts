/**
 * The real process behind a {@linkcode CommandContext}.
 *
 * @module
 */

import type { CommandContext } from "./command.ts";

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

/** @returns Whether somebody may read it. */
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
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    return false;
  }
  return true;
}

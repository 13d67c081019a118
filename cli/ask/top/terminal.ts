/**
 * Takes over the whole terminal for a while, key by key. However the program
 * ends, the terminal is restored.
 *
 * @module
 */

import type { TerminalSize } from "../../program/answer_output.ts";
import { type Key, keysOf } from "../../../admin/ask/top_state.ts";
import { onSignals } from "../../program/signals.ts";

/** What a full screen needs of the process; tests make their own. */
export interface TerminalPort {
  setRaw(isRaw: boolean): void;
  /** The typed bytes; `null`: the input has ended. */
  read(into: Uint8Array): Promise<number | null>;
  print(text: string): void;
  size(): TerminalSize;
  /** Calls when the size has changed. @returns An end to that. */
  onResize(resized: () => void): () => void;
  /** Calls when the program is to end. @returns An end to that. */
  onEnd(end: () => void): () => void;
}

/** An alternate screen (xterm's 1049) without cursor and line wrap. */
const OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
const CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/**
 * Old content is cleared before a line is written, because after a full line
 * the cursor would clear its last column.
 */
const HOME = "\x1b[H";
const EMPTY_LINE = "\x1b[2K";

export class FullScreen {
  readonly #undo: (() => void)[] = [];
  #isOpen = false;

  constructor(private readonly port: TerminalPort) {}

  /** @param keys Is given each key, until the end. */
  open(
    events: {
      keys(keys: readonly Key[]): void;
      resized(): void;
      ended(): void;
    },
  ): void {
    this.#isOpen = true;
    this.port.setRaw(true);
    this.#undo.push(
      this.port.onResize(() => events.resized()),
      this.port.onEnd(() => {
        // The process may end before a listener is called.
        this.close();
        events.ended();
      }),
    );
    this.port.print(OPEN);
    this.#read(events.keys).then(events.ended, events.ended);
  }

  get size(): TerminalSize {
    return this.port.size();
  }

  /** In one write, so that no half screen is visible. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    this.port.print(
      HOME + lines.map((line) => EMPTY_LINE + line).join("\r\n"),
    );
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const undo of this.#undo.splice(0)) undo();
    this.port.print(CLOSE);
    this.port.setRaw(false);
  }

  async #read(keys: (keys: readonly Key[]) => void): Promise<void> {
    const buffer = new Uint8Array(256);
    const decoder = new TextDecoder();
    while (this.#isOpen) {
      const count = await this.port.read(buffer);
      if (count === null || !this.#isOpen) return;
      const text = decoder.decode(buffer.subarray(0, count), { stream: true });
      keys(keysOf(text));
    }
  }
}

const ENDS: readonly Deno.Signal[] = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"];

/** The process's own. */
export function processTerminal(
  print: (text: string) => void,
): TerminalPort {
  return {
    print,
    setRaw: (isRaw) => {
      try {
        Deno.stdin.setRaw(isRaw);
      } catch {
        // The terminal is gone: there is nothing to restore.
      }
    },
    read: (into) => Deno.stdin.read(into),
    size: () => Deno.consoleSize(),
    onResize: (resized) => listening(["SIGWINCH"], resized),
    onEnd: (end) => {
      // An unexpected error ends the process without a signal.
      globalThis.addEventListener("unload", end);
      const quiet = listening(ENDS, end);
      return () => {
        globalThis.removeEventListener("unload", end);
        quiet();
      };
    },
  };
}

function listening(
  signals: readonly Deno.Signal[],
  listener: () => void,
): () => void {
  const heard = onSignals(signals, listener);
  return () => heard[Symbol.dispose]();
}

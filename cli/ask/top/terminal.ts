/**
 * Takes over the whole terminal for a while, key by key. However the program
 * ends, the terminal is restored.
 *
 * @module
 */

import { quietly } from "../../../platform/errors/error_code.ts";
import type { TerminalSize } from "../../program/answer_output.ts";
import { type Key, keysOf } from "../../../admin/ask/top_state.ts";
import { onSignals } from "../../program/signals.ts";

/** An alternate screen (xterm's 1049) without cursor and line wrap. */
const OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
const CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/**
 * Old content is cleared before a line is written, because after a full line
 * the cursor would clear its last column.
 */
const HOME = "\x1b[H";
const EMPTY_LINE = "\x1b[2K";

const ENDS: readonly Deno.Signal[] = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"];

export class FullScreen {
  readonly #heard = new DisposableStack();
  #isOpen = false;

  constructor(private readonly print: (text: string) => void) {}

  /** @param events `keys` is given each key, until the end. */
  open(
    events: {
      keys(keys: readonly Key[]): void;
      resized(): void;
      ended(): void;
    },
  ): void {
    this.#isOpen = true;
    quietly(() => Deno.stdin.setRaw(true));
    const end = () => {
      // The process may end before a listener is called.
      this.close();
      events.ended();
    };
    this.#heard.use(onSignals(["SIGWINCH"], () => events.resized()));
    this.#heard.use(onSignals(ENDS, end));
    // An unexpected error ends the process without a signal.
    globalThis.addEventListener("unload", end);
    this.#heard.defer(() => globalThis.removeEventListener("unload", end));
    this.print(OPEN);
    this.#read(events.keys).then(events.ended, events.ended);
  }

  get size(): TerminalSize {
    return Deno.consoleSize();
  }

  /** In one write, so that no half screen is visible. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    this.print(HOME + lines.map((line) => EMPTY_LINE + line).join("\r\n"));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#heard.dispose();
    this.print(CLOSE);
    // Where the terminal is gone there is nothing to restore.
    quietly(() => Deno.stdin.setRaw(false));
  }

  async #read(keys: (keys: readonly Key[]) => void): Promise<void> {
    const buffer = new Uint8Array(256);
    const decoder = new TextDecoder();
    while (this.#isOpen) {
      const count = await Deno.stdin.read(buffer);
      if (count === null || !this.#isOpen) return;
      const text = decoder.decode(buffer.subarray(0, count), { stream: true });
      keys(keysOf(text));
    }
  }
}

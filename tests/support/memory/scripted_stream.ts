/**
 * A stream in the hands of a test: what it gives, what it takes, and how it
 * fails.
 *
 * @module
 */

import { Ready } from "../../../net/poll/poller.ts";
import { DeliveredStream } from "./memory_stream.ts";

/** See the module description. */
export class ScriptedStream extends DeliveredStream {
  readonly remoteAddress = "";
  readonly localAddress = "";
  readonly closesInOrder = false;
  /** What was written, by call. */
  readonly written: Uint8Array[] = [];
  /** What else was asked for. */
  readonly calls: ("closeWrite" | "close" | "reset")[] = [];
  /** How much a write takes at the most. */
  takes = Infinity;
  /** What was written leaves when the test says so. */
  isSlow = false;
  writeError: Error | undefined;
  #isLeaving = false;

  /** What was written, as text. */
  get texts(): string[] {
    return this.written.map((bytes) => new TextDecoder().decode(bytes));
  }

  /** What was written has left, or there is room again. */
  complete(): void {
    this.#isLeaving = false;
    this.notifier.notify(Ready.WRITE);
  }

  write(bytes: Uint8Array): number {
    this.mustBeOpen();
    if (this.writeError !== undefined) throw this.writeError;
    if (this.#isLeaving) return 0;
    const count = Math.min(bytes.length, this.takes);
    this.written.push(bytes.slice(0, count));
    this.#isLeaving = this.isSlow;
    return count;
  }

  override flush(): boolean {
    return super.flush() && !this.#isLeaving;
  }

  closeWrite(): void {
    this.calls.push("closeWrite");
  }

  close(): void {
    this.end(() => this.calls.push("close"));
  }

  reset(): void {
    this.end(() => this.calls.push("reset"));
  }
}

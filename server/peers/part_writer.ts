/**
 * Writes what a server publishes, part by part and the newest text of each; what
 * fails is written again. Refuses to know where to.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { pause } from "../../platform/time/pause.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** After a write that failed, the next one comes then. */
export const REWRITE_MS = 1_000;

/** What `PartWriter` needs from outside. */
export interface PartWriterOptions {
  readonly timers: Timers;
  /** Whether there is something to write to now. */
  isReady(): boolean;
  /** Without text: removes it. Rejects with what `problemOf` knows. */
  write(part: string, text: string | undefined): Promise<void>;
  /** A sentence. @throws What is no trouble of the world's. */
  problemOf(error: unknown): string;
  onProblem(message: string): void;
}

export class PartWriter {
  readonly #options: PartWriterOptions;
  readonly #texts = new Map<string, string>();
  readonly #unwritten = new Set<string>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: PartWriterOptions) {
    this.#options = options;
  }

  /** What there should be. */
  get texts(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  publish(part: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(part);
    else this.#texts.set(part, text);
    this.#unwritten.add(part);
    this.resume();
  }

  /** It has been lost, or written in another way. */
  mark(part: string, isWritten: boolean): void {
    if (isWritten) this.#unwritten.delete(part);
    else this.#unwritten.add(part);
    this.resume();
  }

  /** There is something to write to. */
  resume(): void {
    const isIdle = this.#running === undefined && this.#unwritten.size > 0 &&
      this.#options.isReady() && !this.#stopping.signal.aborted;
    if (!isIdle) return;
    this.#running = this.#writeOne().finally(() => {
      this.#running = undefined;
      this.resume();
    });
    unawaited("task", this.#running);
  }

  /** Settles when nothing is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #writeOne(): Promise<void> {
    const { timers, write, problemOf, onProblem } = this.#options;
    const [part] = this.#unwritten;
    this.#unwritten.delete(part!);
    try {
      await write(part!, this.#texts.get(part!));
    } catch (error) {
      const message = problemOf(error);
      this.#unwritten.add(part!);
      if (this.#stopping.signal.aborted) return;
      onProblem(message);
      await pause(timers, REWRITE_MS, this.#stopping.signal);
    }
  }
}

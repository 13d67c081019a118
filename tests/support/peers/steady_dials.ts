/**
 * Dials that begin one after each pause, whatever became of the ones before: what
 * failed, and how long the slowest one took.
 *
 * @module
 */

import { sleep } from "../watch/event_loop.ts";

const PAUSE_MS = 50;

/** See the module description. */
export class SteadyDials {
  readonly failures: string[] = [];
  /** What each took until it was answered, or failed. */
  readonly tookMs: number[] = [];
  readonly #going = new Set<Promise<void>>();
  readonly #timer: ReturnType<typeof setInterval>;

  /**
   * @param ask Throws when there is no answer; may say by `answered` that what
   *   follows is not the dial any more.
   */
  constructor(
    private readonly ask: (answered: () => void) => Promise<void>,
  ) {
    this.#timer = setInterval(() => {
      const asking = this.#ask();
      this.#going.add(asking);
      asking.finally(() => this.#going.delete(asking));
    }, PAUSE_MS);
  }

  async #ask(): Promise<void> {
    const startedMs = performance.now();
    let answeredMs: number | undefined;
    try {
      await this.ask(() => answeredMs ??= performance.now());
    } catch (error) {
      this.failures.push((error as Error).message);
    }
    this.tookMs.push((answeredMs ?? performance.now()) - startedMs);
  }

  get slowestMs(): number {
    return Math.max(...this.tookMs);
  }

  /** Breaks something, and mends it; so long for each. */
  async during(
    breaking: () => void,
    mending: () => void,
    { brokenMs, mendedMs }: { brokenMs: number; mendedMs: number },
  ): Promise<void> {
    breaking();
    await sleep(brokenMs);
    mending();
    await sleep(mendedMs);
  }

  /** Begins no more, and waits for those that have begun. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#going);
  }
}

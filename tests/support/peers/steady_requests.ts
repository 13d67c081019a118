/**
 * Requests one after the other, each over a connection of its own, while
 * something else happens: how many were answered, and what became of the others.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { whenLate } from "../watch/patience.ts";

/** What became of the requests. */
export interface RequestCounts {
  readonly answered: number;
  /** By what went wrong. */
  readonly failures: Map<string, number>;
}

/** Asks once; throws when there is no answer. */
export type Ask = () => Promise<void>;

/** A request must not take so long: nobody would wait. */
const PATIENCE_MS = 5_000;

/** See the module description. */
export class SteadyRequests {
  readonly #ask: Ask;
  readonly #failures = new Map<string, number>();
  readonly #over: Promise<void>;
  #answered = 0;
  #isOver = false;
  #waiting: { readonly count: number; readonly wake: () => void }[] = [];

  /**
   * @param atOnce How many askers there are.
   * @param pauseMs What each waits between two requests.
   */
  constructor(ask: Ask, atOnce = 4, pauseMs = 2) {
    this.#ask = ask;
    const askers = Array.from({ length: atOnce }, () => this.#run(pauseMs));
    this.#over = Promise.all(askers).then(() => {});
  }

  /** Resolves when so many more were asked. */
  more(count: number): Promise<void> {
    return new Promise((wake) =>
      this.#waiting.push({ count: this.#asked + count, wake })
    );
  }

  /** Asks no more. */
  async stop(): Promise<RequestCounts> {
    this.#isOver = true;
    await this.#over;
    return { answered: this.#answered, failures: this.#failures };
  }

  /** Asks no more; that nothing was refused. @param leastCount Were asked. */
  async mustBeAnswered(leastCount: number): Promise<void> {
    const { answered, failures } = await this.stop();
    assertEquals(Object.fromEntries(failures), {}, `${answered} were answered`);
    assert(answered >= leastCount, `only ${answered} were asked`);
  }

  get #asked(): number {
    let asked = this.#answered;
    for (const count of this.#failures.values()) asked += count;
    return asked;
  }

  async #run(pauseMs: number): Promise<void> {
    while (!this.#isOver) {
      await this.#once();
      const asked = this.#asked;
      this.#waiting = this.#waiting.filter(({ count, wake }) => {
        if (asked >= count) wake();
        return asked < count;
      });
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #once(): Promise<void> {
    const late = Promise.withResolvers<never>();
    const inTime = whenLate(
      PATIENCE_MS,
      () => late.reject(new Error("no answer in time")),
    );
    try {
      await Promise.race([this.#ask(), late.promise]);
      this.#answered++;
    } catch (error) {
      const why = reasonOf(error);
      this.#failures.set(why, (this.#failures.get(why) ?? 0) + 1);
    } finally {
      inTime();
    }
  }
}

/** `fetch` says what happened in its cause alone. Ports differ each time. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const why = cause instanceof Error ? `: ${cause.message}` : "";
  return `${error.message}${why}`.replaceAll(/from [\d.]+:\d+ /g, "");
}

/** Asks for an echo at a port of loopback. */
export function askEcho(port: number): Ask {
  return async () => {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    try {
      await conn.write(new TextEncoder().encode("hello"));
      const buffer = new Uint8Array(16);
      let bytes = 0;
      while (bytes < 5) {
        const count = await conn.read(buffer);
        if (count === null) throw new Error(`the answer has ${bytes} bytes`);
        bytes += count;
      }
    } finally {
      conn.close();
    }
  };
}

/**
 * The end of a service proxy, in order. Asked to end, it is not ready any more,
 * and goes on serving clients that come as long as something runs: another process
 * may take its ports over meanwhile. When one has, only what runs goes on.
 *
 * ```
 * running ──begin──► draining ──idle, or time is over──► closed
 *    │                  │ handedOver                       ▲
 *    └──handedOver──► leaving ─────────────────────────────┘
 * ```
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How often it is looked whether something still runs. */
export const LOOK_MS = 50;

/**
 * When the time is over nobody new is accepted, and who has just come has so
 * long: a request that began a moment ago is not cut off because another
 * connection would not end.
 */
export const LAST_MS = 500;

/** What has to be done at each step. */
export interface ProxyDrainSteps {
  /**
   * What is waited for.
   *
   * @param isLeaving Datagrams come no more, so sessions end by themselves.
   */
  load(isLeaving: boolean): number;
  /** Another process has the ports: open none any more. */
  retire(): void;
  /**
   * Ends everything; settles when it is gone.
   *
   * @param lastMs How long what runs may still go on; nobody new comes.
   */
  close(reason: string, lastMs: number): Promise<void>;
}

/** Idempotent. */
export class ProxyDrain {
  readonly #steps: ProxyDrainSteps;
  readonly #timers: Timers;
  readonly #log: Log;
  readonly #finished = Promise.withResolvers<void>();
  #state: "running" | "draining" | "leaving" | "closed" = "running";
  #deadline: Timer | undefined;
  #look: Timer | undefined;

  constructor(
    steps: ProxyDrainSteps,
    { timers, log }: { readonly timers: Timers; readonly log: Log },
  ) {
    this.#steps = steps;
    this.#timers = timers;
    this.#log = log;
  }

  /** Settles when everything is closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** It was asked to end, or another process serves. */
  get isDraining(): boolean {
    return this.#state !== "running";
  }

  /**
   * @param why Who asked, such as `SIGTERM`.
   * @param timeoutMs How long what runs may go on; 0 ends it at once.
   */
  begin(why: string, timeoutMs: number): void {
    if (this.#state !== "running") return;
    this.#state = "draining";
    const load = this.#steps.load(false);
    this.#log.info(
      `${why}: draining, ${load} ${connections(load)}, at most ` +
        `${timeoutMs / 1000} s; who comes is served`,
    );
    this.#wait(timeoutMs);
  }

  /** @param pid The process that accepts from now on. */
  handedOver(pid: number, timeoutMs: number): void {
    if (this.#state !== "running" && this.#state !== "draining") return;
    this.#state = "leaving";
    this.#steps.retire();
    const load = this.#steps.load(true);
    this.#log.info(
      `handed over to process ${pid}: ${load} ${
        connections(load)
      } may go on, ` +
        `at most ${timeoutMs / 1000} s`,
    );
    this.#wait(timeoutMs);
  }

  /** Ends without waiting any longer. */
  now(reason: string): void {
    this.#close(reason, 0);
  }

  #close(reason: string, lastMs: number): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#deadline?.cancel();
    this.#look?.cancel();
    const load = this.#steps.load(true);
    const cut = load === 0 ? "" : `; ${load} ${connections(load)} cut off`;
    this.#steps.close(reason, lastMs).then(() => {
      this.#log.info(`ended: ${reason}${cut}`);
      this.#finished.resolve();
    }, this.#finished.reject);
  }

  #wait(timeoutMs: number): void {
    if (timeoutMs === 0) return this.now("the proxy is stopping");
    this.#deadline ??= this.#timers.after(
      timeoutMs,
      () => this.#close(`the drain took ${timeoutMs / 1000} s`, LAST_MS),
    );
    this.#look?.cancel();
    this.#lookNow();
  }

  /** Clients that come may still be served, so nothing says which is the last one. */
  #lookNow(): void {
    if (this.#steps.load(this.#state === "leaving") === 0) {
      return this.now("nothing runs any more");
    }
    this.#look = this.#timers.after(LOOK_MS, () => this.#lookNow());
  }
}

function connections(count: number): string {
  return count === 1 ? "connection" : "connections";
}

/**
 * Limits the number of look-ups that run at a time, in total and for one
 * domain, so that a domain with silent servers delays no other.
 *
 * The domain with the fewest running look-ups comes first: its servers answer,
 * or it is new. Among its look-ups the newest comes first, because older ones
 * have less time left. When all places are taken and a look-up waits, the
 * running one that has been unanswered for longest gives way: most answers come
 * within milliseconds, so half a second is long.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** A look-up that has run for this long gives way to others. */
export const SLOW_MS = 500;

/** What a `LookupQueue` allows. */
export interface LookupLimits {
  /** Limit at a time, in total. */
  readonly running: number;
  /** Limit at a time, for one domain. */
  readonly perDomain: number;
  /** That wait for a place, half of it for one domain; more are refused at once. */
  readonly waiting: number;
  /** From the call until it is given up, waiting included. */
  readonly timeoutMs: number;
}

/** Why a look-up was given up by its queue. */
export class QueueError extends Error {
  override readonly name = "QueueError";

  constructor(readonly fault: "timeout" | "full") {
    super(fault);
  }
}

/** A look-up that waits, or has a place. */
interface Job {
  readonly domain: string;
  readonly controller: AbortController;
  /** Settles with the task. */
  begin(): Promise<void>;
  isSlow: boolean;
}

export class LookupQueue {
  /** By domain; in both orders the one that has waited longest comes first. */
  readonly #waiting = new Map<string, Set<Job>>();
  #waitingCount = 0;
  /** In the order in which they began. */
  readonly #running = new Set<Job>();

  constructor(
    private readonly limits: LookupLimits,
    private readonly timers: Timers,
  ) {}

  /** How many have a place. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Runs `task` when there is a place. The place is taken until the task has
   * settled, also when it was given up and does not listen.
   *
   * @throws {QueueError} Or what the task throws.
   */
  run<Result>(
    domain: string,
    task: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    if (!this.#hasRoomFor(domain)) {
      return Promise.reject(new QueueError("full"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const controller = new AbortController();
    const { signal } = controller;
    const begin = () => task(signal).then(resolve, reject);
    const job: Job = { domain, controller, begin, isSlow: false };
    signal.addEventListener("abort", () => {
      this.#leave(job);
      reject(signal.reason);
    });
    const deadline = this.timers.after(
      this.limits.timeoutMs,
      () => giveUp(job),
    );
    this.#wait(job);
    this.#fill();
    return promise.finally(() => deadline.cancel());
  }

  /**
   * How many look-ups of a domain may wait: as many as there is room left for
   * others. So one domain alone fills half of it, and a new domain finds room
   * beside it.
   */
  #hasRoomFor(domain: string): boolean {
    const own = this.#waiting.get(domain)?.size ?? 0;
    return own < this.limits.waiting - this.#waitingCount;
  }

  #wait(job: Job): void {
    const own = this.#waiting.get(job.domain) ?? new Set();
    this.#waiting.set(job.domain, own.add(job));
    this.#waitingCount++;
  }

  #leave(job: Job): void {
    const own = this.#waiting.get(job.domain);
    if (own === undefined || !own.delete(job)) return;
    this.#waitingCount--;
    if (own.size === 0) this.#waiting.delete(job.domain);
  }

  #fill(): void {
    while (this.#waitingCount > 0) {
      const job = this.#next();
      if (job === undefined) return this.#makeRoom();
      this.#start(job);
    }
  }

  #next(): Job | undefined {
    if (this.#running.size >= this.limits.running) return undefined;
    const counts = new Map<string, number>();
    for (const { domain } of this.#running) {
      counts.set(domain, (counts.get(domain) ?? 0) + 1);
    }
    let next: Set<Job> | undefined;
    let fewest = this.limits.perDomain - 1;
    for (const [domain, jobs] of this.#waiting) {
      const count = counts.get(domain) ?? 0;
      if (count > fewest) continue;
      fewest = count;
      next = jobs;
    }
    return next?.values().next().value;
  }

  #start(job: Job): void {
    this.#leave(job);
    this.#running.add(job);
    const slow = this.timers.after(SLOW_MS, () => {
      job.isSlow = true;
      this.#fill();
    });
    const running = job.begin().finally(() => {
      slow.cancel();
      this.#running.delete(job);
      this.#fill();
    });
    unawaited("dial", running);
  }

  /** A look-up that gives way leaves when its task is aborted. */
  #makeRoom(): void {
    const isFull = this.#running.size >= this.limits.running;
    let wanted = this.#waitingCount;
    for (const job of this.#running) {
      if (!job.isSlow || wanted === 0) return;
      if (!isFull && !this.#waiting.has(job.domain)) continue;
      wanted--;
      giveUp(job);
    }
  }
}

function giveUp({ controller }: Job): void {
  controller.abort(new QueueError("timeout"));
}

/**
 * Lets so many look-ups run at a time, in all and for one domain, so that a
 * domain whose servers are silent takes from no other one.
 *
 * Domains have their turns one after another, one that is new the first: it may
 * be well, and those that came before it have less of their time left. When all
 * places are taken and a look-up waits, the one that has been without an answer
 * for longest gives way: most answers come within milliseconds, so half a
 * second is long.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** A look-up that has run for so long gives way to others. */
export const SLOW_MS = 500;

/** What a `LookupQueue` allows. */
export interface LookupLimits {
  /** At a time, in all. */
  readonly running: number;
  /** At a time, of one domain. */
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

type Task<Result> = (signal: AbortSignal) => Promise<Result>;

export class LookupQueue {
  /** Those that have any; the one whose turn is longest ago comes first. */
  readonly #domains = new Map<string, Domain>();
  /** The only ones of their domains when they came; the last is the newest. */
  readonly #new: Job[] = [];
  /** In the order in which they began. */
  readonly #running = new Set<Job>();
  #waiting = 0;

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
  run<Result>(domain: string, task: Task<Result>): Promise<Result> {
    if (!this.#hasRoomFor(domain)) {
      return Promise.reject(new QueueError("full"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const job = new Job(
      domain,
      this.timers,
      (signal) => task(signal).then(resolve, reject),
    );
    job.controller.signal.addEventListener("abort", () => {
      this.#forget(job);
      reject(job.controller.signal.reason);
    });
    job.arm(this.limits.timeoutMs);
    this.#waiting++;
    if (!this.#domains.has(domain)) this.#new.push(job);
    this.#domainOf(domain).waiting.push(job);
    this.#fill();
    return promise;
  }

  /**
   * As many of a domain may wait as there would be room left for others: one
   * alone fills half of it, and a domain that is new finds room beside it.
   */
  #hasRoomFor(domain: string): boolean {
    const own = this.#domains.get(domain)?.waiting.length ?? 0;
    return own < this.limits.waiting - this.#waiting;
  }

  #domainOf(name: string): Domain {
    const known = this.#domains.get(name);
    if (known !== undefined) return known;
    const domain = { running: 0, waiting: [] };
    this.#domains.set(name, domain);
    return domain;
  }

  #fill(): void {
    while (this.#waiting > 0) {
      const isFull = this.#running.size >= this.limits.running;
      const job = isFull ? undefined : this.#next();
      if (job === undefined) return this.#makeRoom(isFull);
      this.#start(job);
    }
  }

  #next(): Job | undefined {
    for (let job = this.#new.pop(); job; job = this.#new.pop()) {
      const domain = this.#domains.get(job.domain);
      // It may have been given up, or had its turn with its domain.
      if (domain?.waiting[0] === job && domain.running === 0) {
        return this.#take(job.domain, domain);
      }
    }
    for (const [name, domain] of this.#domains) {
      if (domain.running >= this.limits.perDomain) continue;
      if (domain.waiting.length > 0) return this.#take(name, domain);
    }
    return undefined;
  }

  #take(name: string, domain: Domain): Job {
    // Its next turn is behind all others.
    this.#domains.delete(name);
    this.#domains.set(name, domain);
    this.#waiting--;
    domain.running++;
    return domain.waiting.shift()!;
  }

  #start(job: Job): void {
    this.#running.add(job);
    const slow = this.timers.after(SLOW_MS, () => {
      job.isSlow = true;
      this.#fill();
    });
    const running = job.begin().finally(() => {
      slow.cancel();
      job.disarm();
      this.#running.delete(job);
      this.#domainOf(job.domain).running--;
      this.#forget(job);
      this.#fill();
    });
    unawaited("dial", running);
  }

  /** A look-up that gives way leaves when its task is aborted. */
  #makeRoom(isFull: boolean): void {
    let wanted = this.#waiting;
    for (const job of this.#running) {
      if (!job.isSlow || wanted === 0) return;
      const isInTheWay = isFull ||
        this.#domains.get(job.domain)!.waiting.length > 0;
      if (!isInTheWay) continue;
      wanted--;
      if (job.controller.signal.aborted) continue;
      job.controller.abort(new QueueError("timeout"));
    }
  }

  /** It waits no longer; and nothing is kept of a domain without any. */
  #forget(job: Job): void {
    const domain = this.#domains.get(job.domain);
    if (domain === undefined) return;
    const at = domain.waiting.indexOf(job);
    if (at >= 0) {
      domain.waiting.splice(at, 1);
      this.#waiting--;
    }
    if (domain.running === 0 && domain.waiting.length === 0) {
      this.#domains.delete(job.domain);
    }
  }
}

interface Domain {
  running: number;
  readonly waiting: Job[];
}

class Job {
  readonly controller = new AbortController();
  isSlow = false;
  #deadline: Timer | undefined;

  constructor(
    readonly domain: string,
    private readonly timers: Timers,
    private readonly run: (signal: AbortSignal) => Promise<void>,
  ) {}

  begin(): Promise<void> {
    return this.run(this.controller.signal);
  }

  arm(timeoutMs: number): void {
    const giveUp = () => this.controller.abort(new QueueError("timeout"));
    this.#deadline = this.timers.after(timeoutMs, giveUp);
  }

  disarm(): void {
    this.#deadline?.cancel();
  }
}

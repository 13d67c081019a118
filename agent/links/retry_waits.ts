/**
 * How long an address waits before it is tried again, by why it is tried.
 *
 * Each reason has a backoff of its own: trouble on the path, a closed port,
 * links that die young, a search that finds only linked servers, and another
 * look at an address that led to one of those.
 *
 * @module
 */

import { Backoff } from "../../proto/sync/backoff.ts";

/** Longest wait after an attempt that failed. */
export const FAILED_CAP_MS = 5_000;

/**
 * While the server's machine says that nothing listens there, it is being
 * started again: no wait is longer than this, by how long that has gone on. The
 * kernel refuses each attempt, which costs the server nothing.
 */
const RESTART_PACE: readonly {
  readonly untilMs: number;
  readonly waitMs: number;
}[] = [
  { untilMs: 10_000, waitMs: 200 },
  { untilMs: 60_000, waitMs: 500 },
  { untilMs: 600_000, waitMs: 1_500 },
];

/**
 * Longest wait for the successor of a server that says it is going. The
 * successor is there soon, or only after the old server has ended, which the
 * agent notices. Until then each attempt costs the old server a handshake.
 */
const SUCCESSOR_WAIT_MS = 10_000;

/** No report of a server delays the search for another one longer than this. */
export const SPREAD_MS_MAX = 20_000;

/**
 * Longest wait between two searches that other addresses make needless: they
 * lead nowhere, and so to the servers that are missing.
 */
export const EXPLAINED_CAP_MS = 60_000;

/** Nor is such a search begun sooner: those addresses are tried first. */
const EXPLAINED_FIRST_MS = 1_000;

/** An alias may be a balancer: it is looked at again, ever more seldom. */
export const LINK_LOOK_MS = { first: 30_000, cap: 300_000 } as const;

/** What `RetryWaits` needs. */
interface RetryWaitsOptions {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The first wait, when the user has set one; otherwise a short one. */
  readonly firstMs?: number | undefined;
  /** Longest wait of a search. */
  readonly searchCapMs: number;
}

export class RetryWaits {
  readonly #leastMs: number;
  readonly #searchCapMs: number;
  readonly #failures: Backoff;
  readonly #refusals: Backoff;
  readonly #relapses: Backoff;
  readonly #successors: Backoff;
  readonly #search: Backoff;
  readonly #looks: Backoff;
  readonly #strange: Backoff;
  /** When a successor is looked for at the earliest. */
  #spreadUntilMs = -Infinity;
  /** Since when every attempt was refused by the server's machine. */
  #refusedSinceMs: number | undefined;

  constructor(private readonly options: RetryWaitsOptions) {
    const { random, firstMs, searchCapMs } = options;
    this.#leastMs = firstMs ?? 0;
    this.#searchCapMs = Math.max(searchCapMs, this.#leastMs);
    const waits = (capMs: number) =>
      new Backoff({ capMs: Math.max(this.#leastMs, capMs), firstMs, random });
    const failedCapMs = Math.min(FAILED_CAP_MS, searchCapMs);
    this.#failures = waits(failedCapMs);
    this.#refusals = waits(failedCapMs);
    this.#relapses = waits(failedCapMs);
    this.#successors = waits(SUCCESSOR_WAIT_MS);
    this.#search = waits(Math.max(EXPLAINED_CAP_MS, searchCapMs));
    this.#strange = waits(Math.max(EXPLAINED_CAP_MS, searchCapMs));
    this.#looks = new Backoff({
      capMs: LINK_LOOK_MS.cap,
      firstMs: LINK_LOOK_MS.first,
      random,
    });
  }

  /** A server answered, whichever it was. */
  answered(): void {
    this.#refusedSinceMs = undefined;
    this.#failures.reset();
    this.#refusals.reset();
  }

  /** A link was made. */
  linked(): void {
    this.answered();
    this.#spreadUntilMs = -Infinity;
    this.#successors.reset();
    this.#strange.reset();
    this.#search.reset();
    this.#looks.reset();
  }

  /** A server was lost, or there may be more of them. */
  news(): void {
    this.#search.reset();
    this.#looks.reset();
  }

  /** A server is said to be there that was not before. */
  saidAnew(): void {
    this.answered();
    this.#strange.reset();
  }

  /** The network has changed: earlier failures mean nothing. */
  hurry(): void {
    this.answered();
    this.#successors.reset();
  }

  /** How long others of the same server's agents come before this one. */
  spreadLeftMs(nowMs: number): number {
    return Math.max(0, this.#spreadUntilMs - nowMs);
  }

  /** A link was lost: the next one is made at once, unless it was young. */
  lostMs(wasYoung: boolean): number {
    this.#failures.reset();
    if (wasYoung) return this.#relapses.nextMs();
    this.#relapses.reset();
    return this.#failures.nextMs();
  }

  /** @param isRefused The server's machine is there, and nothing listens. */
  failedMs(isRefused: boolean, nowMs: number): number {
    if (!isRefused) {
      this.#refusedSinceMs = undefined;
      return this.#failures.nextMs();
    }
    this.#refusedSinceMs ??= nowMs;
    const forMs = nowMs - this.#refusedSinceMs;
    const pace = RESTART_PACE.find(({ untilMs }) => forMs < untilMs);
    return this.#refusals.nextMs(
      Math.max(this.#leastMs, pace?.waitMs ?? Infinity),
    );
  }

  /**
   * A server that is going wants its agents to come to others one by one.
   *
   * @param windowMs Within which; its word is not believed beyond a limit.
   */
  spread(windowMs: number, nowMs: number): void {
    const withinMs = Math.min(windowMs, SPREAD_MS_MAX);
    this.#spreadUntilMs = nowMs + withinMs * this.options.random();
  }

  successorMs(nowMs: number): number {
    return Math.max(this.spreadLeftMs(nowMs), this.#successors.nextMs());
  }

  /** @param isExplained Other addresses may lead to the servers missing. */
  searchMs(isExplained: boolean): number {
    if (!isExplained) return this.#search.nextMs(this.#searchCapMs);
    return Math.max(EXPLAINED_FIRST_MS, this.#search.nextMs());
  }

  /** A learned address that never led to a server, or only briefly. */
  strangeMs(): number {
    return this.#strange.nextMs();
  }

  lookMs(): number {
    return this.#looks.nextMs();
  }
}

/**
 * Finds the owners of tokens, and asks the API server as rarely as safety
 * allows.
 *
 * After a break all agents come back at once, each with its old token. So a
 * positive answer counts for a minute, and two agents with the same token wait
 * for one answer. A negative answer is not kept, so that a token that becomes
 * good is not refused for a minute. The order of waiting tokens is decided in
 * `token_reviews.ts`.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { ReviewedToken } from "../../neighbours/kubernetes/token_review.ts";
import { setNewest } from "../../proto/sync/newest.ts";
import { Tally } from "../../proto/sync/tally.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { Code } from "../../proto/codes/codes.ts";

/** How long a revoked token may still admit an agent. */
export const BELIEVED_MS = 60_000;

/** Tokens remembered; agents beyond that are asked about each time. */
export const REMEMBERED_MAX = 10_000;

/** Reviews tokens, and remembers those that are good. */
export class TokenReviews {
  readonly #queue: ReviewQueue;
  /** By the token's SHA-256: a dump of this process holds no token. */
  readonly #known = new Map<
    string,
    { found: ReviewedToken; untilMs: number }
  >();
  readonly #underWay = new Map<string, Promise<ReviewedToken>>();

  /**
   * @param review Asks the API server.
   * @param rememberedMax See {@linkcode REMEMBERED_MAX}.
   */
  constructor(
    private readonly review: (token: string) => Promise<ReviewedToken>,
    private readonly clock: Clock,
    private readonly rememberedMax = REMEMBERED_MAX,
  ) {
    this.#queue = new ReviewQueue(clock);
  }

  /**
   * @param source Where it came from; see `net/admission/source.ts`.
   * @throws {TooManyReviewsError} And what `review` throws.
   */
  async of(token: string, source: string): Promise<ReviewedToken> {
    const hash = sha256(token);
    const known = this.#known.get(hash);
    if (known !== undefined && this.clock.now() < known.untilMs) {
      return known.found;
    }
    this.#known.delete(hash);
    const waiting = this.#underWay.get(hash);
    if (waiting !== undefined) return await waiting;
    const asking = this.#queue.run(source, () => this.#ask(hash, token))
      .finally(() => this.#underWay.delete(hash));
    this.#underWay.set(hash, asking);
    const found = await asking;
    this.#queue.note(source, found.kind === "service-account");
    return found;
  }

  async #ask(hash: string, token: string): Promise<ReviewedToken> {
    const beginMs = this.clock.now();
    const found = await this.review(token);
    if (found.kind === "service-account") {
      const known = { found, untilMs: beginMs + BELIEVED_MS };
      setNewest(this.#known, hash, known, this.rememberedMax);
    }
    return found;
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

// Which token is reviewed next, when more are shown than the API server can
// review at once.
//
// Invented tokens cost nothing, so their sender must not decide which tokens
// wait. Tokens wait by the source that they came from, sources take turns, and
// those that showed a good token lately go before those of which nothing is
// known, and these before those that showed a bad one. A source may take as
// much room as it leaves free: one source takes half of the room, two take a
// third each.
//
// This class knows neither tokens nor the API server.

/**
 * Reviews at once: about as many as the API server's client sends in a second,
 * so that a review that is first here is soon sent.
 */
export const UNDER_WAY_MAX = 128;

/** Tokens that wait for their turn. */
export const REVIEWS_WAITING_MAX = 1_000;

/** Agents wait ten seconds for their link, and a review may take seven. */
export const TURN_WAIT_MS = 7_000;

/** Sources remembered of each kind; the one noted longest ago is forgotten. */
export const REVIEWS_SOURCES_MAX = 4_096;

/** The classes of sources, best first. */
const STANDINGS = ["good", "unknown", "bad"] as const;
type Standing = typeof STANDINGS[number];

/** More wait for the API server than may. */
export class TooManyReviewsError extends Error {
  override readonly name = "TooManyReviewsError";
  readonly tunnelCode: Code = "TUN802";
}

interface Waiting {
  readonly sinceMs: number;
  begin(): void;
  refuse(why: string): void;
}

/** By source, in the order of their turns. */
type Lane = Map<string, Waiting[]>;

/** Runs reviews, as many at once as may be. */
export class ReviewQueue {
  readonly #lanes: Readonly<Record<Standing, Lane>> = {
    good: new Map(),
    unknown: new Map(),
    bad: new Map(),
  };
  #waiting = 0;
  readonly #underWay = new Tally<string>();
  #underWayCount = 0;
  readonly #good = new Set<string>();
  readonly #bad = new Set<string>();

  constructor(private readonly clock: Clock) {}

  /** Tokens that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Has `work` done when it is its turn.
   *
   * @param source Where it came from: sources take turns.
   * @throws {TooManyReviewsError} When its turn does not come; and what `work`
   *   throws.
   */
  run<T>(source: string, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = () => {
      this.#enter(source);
      work().then(resolve, reject).finally(() => this.#leave(source));
    };
    const refuse = (why: string) => reject(new TooManyReviewsError(why));
    const lane = this.#lanes[this.#standingOf(source)];
    if (!lane.has(source) && this.#mayBegin(source)) begin();
    else this.#wait(source, { sinceMs: this.clock.now(), begin, refuse });
    return promise;
  }

  /** Reports the result for a token of `source`. */
  note(source: string, isGood: boolean): void {
    const [into, from] = isGood
      ? [this.#good, this.#bad]
      : [this.#bad, this.#good];
    // One address may show good tokens and a bad one.
    if (isGood) from.delete(source);
    else if (from.has(source)) return;
    into.delete(source);
    into.add(source);
    if (into.size <= REVIEWS_SOURCES_MAX) return;
    const [oldest] = into;
    into.delete(oldest!);
  }

  #standingOf(source: string): Standing {
    if (this.#good.has(source)) return "good";
    return this.#bad.has(source) ? "bad" : "unknown";
  }

  #mayBegin(source: string): boolean {
    const left = UNDER_WAY_MAX - this.#underWayCount;
    return this.#underWay.of(source) < left;
  }

  #enter(source: string): void {
    this.#underWayCount++;
    this.#underWay.add(source);
  }

  #leave(source: string): void {
    this.#underWayCount--;
    this.#underWay.add(source, -1);
    while (this.#beginNext());
  }

  #wait(source: string, waiting: Waiting): void {
    const standing = this.#standingOf(source);
    const lane = this.#lanes[standing];
    const own = lane.get(source) ?? [];
    if (own.length >= REVIEWS_WAITING_MAX - this.#waiting) {
      const hasHalf = own.length >= REVIEWS_WAITING_MAX / 2;
      if (hasHalf || !this.#makeRoom(standing)) {
        waiting.refuse(`${this.#waiting} tokens wait for their review already`);
        return;
      }
    }
    own.push(waiting);
    lane.set(source, own);
    this.#waiting++;
  }

  /** @returns Whether a token of a less known source was refused instead. */
  #makeRoom(standing: Standing): boolean {
    const worse = STANDINGS.slice(STANDINGS.indexOf(standing) + 1).reverse();
    for (const other of worse) {
      const lane = this.#lanes[other];
      const [source] = lane.keys();
      if (source === undefined) continue;
      const own = lane.get(source)!;
      this.#taken(lane, source, own, own.pop()!)
        .refuse("tokens of sources that are known wait for their review");
      return true;
    }
    return false;
  }

  /** @returns Whether one began, or was given up on. */
  #beginNext(): boolean {
    for (const standing of STANDINGS) {
      const lane = this.#lanes[standing];
      for (const [source, own] of lane) {
        if (!this.#mayBegin(source)) continue;
        const next = this.#taken(lane, source, own, own.shift()!);
        const waitedMs = this.clock.now() - next.sinceMs;
        if (waitedMs <= TURN_WAIT_MS) next.begin();
        else next.refuse(`its turn did not come in ${TURN_WAIT_MS} ms`);
        return true;
      }
    }
    return false;
  }

  /** Others of the lane come before the next of this source. */
  #taken(lane: Lane, source: string, own: Waiting[], one: Waiting): Waiting {
    this.#waiting--;
    lane.delete(source);
    if (own.length > 0) lane.set(source, own);
    return one;
  }
}

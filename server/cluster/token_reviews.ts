/**
 * To whom tokens belong, asked as rarely as safety allows.
 *
 * Agents come back all at once after a break, each with the token it had
 * before: what was found about a good one is believed for a minute, and two who
 * show the same one wait for one answer. What was found about a bad one is not
 * kept, so that a token that becomes good is not refused for a minute. Which ones
 * wait when many are shown is decided in `review_queue.ts`.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { ReviewedToken } from "../../neighbours/kubernetes/token_review.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { ReviewQueue } from "./review_queue.ts";

/** How long a token that was taken back may still let an agent in. */
export const BELIEVED_MS = 60_000;

/** Tokens remembered; agents beyond that are asked about each time. */
export const REMEMBERED_MAX = 10_000;

/** Reviews tokens, and remembers those that are good. */
export class TokenReviews {
  readonly #review: (token: string) => Promise<ReviewedToken>;
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
    review: (token: string) => Promise<ReviewedToken>,
    private readonly clock: Clock,
    private readonly rememberedMax = REMEMBERED_MAX,
  ) {
    this.#review = review;
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
    const found = await this.#review(token);
    if (found.kind === "service-account") {
      this.#remember(hash, found, beginMs + BELIEVED_MS);
    }
    return found;
  }

  #remember(hash: string, found: ReviewedToken, untilMs: number): void {
    if (this.#known.size >= this.rememberedMax) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest!);
    }
    this.#known.set(hash, { found, untilMs });
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

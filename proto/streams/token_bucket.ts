/**
 * A budget that fills with time and with good deeds.
 *
 * @module
 */

/** How large a budget is and how it comes back. */
export interface BucketSize {
  /** What an honest peer may need at once. */
  readonly burst: number;
  /** Tokens that come back each second. */
  readonly perSecond: number;
}

export class TokenBucket {
  #tokens: number;
  #filledMs: number;

  constructor(private readonly size: BucketSize, nowMs: number) {
    this.#tokens = size.burst;
    this.#filledMs = nowMs;
  }

  /**
   * Takes one token; `false` if there is none.
   *
   * @param tokens The number of tokens, if it is known only afterwards: they
   *   may leave a debt, which must be refilled before the next token.
   */
  spend(nowMs: number, tokens = 1): boolean {
    if (this.#tokens < 1) this.#fill(nowMs);
    if (this.#tokens < 1) return false;
    this.#tokens -= tokens;
    return true;
  }

  /**
   * Takes a token that may be there only later.
   *
   * @param patienceMs A caller that would have to wait longer gets none.
   * @returns How long to wait for it; `undefined`: none was taken.
   */
  reserve(nowMs: number, patienceMs: number): number | undefined {
    this.#fill(nowMs);
    const missing = Math.max(0, 1 - this.#tokens);
    const waitMs = missing / this.size.perSecond * 1000;
    if (waitMs > patienceMs) return undefined;
    this.#tokens--;
    return waitMs;
  }

  /** 0, or after how many milliseconds there is a token. */
  waitMs(nowMs: number): number {
    if (this.#tokens < 1) this.#fill(nowMs);
    if (this.#tokens >= 1) return 0;
    return Math.ceil((1 - this.#tokens) / this.size.perSecond * 1000);
  }

  /** Gives tokens back; there are never more than `burst`. */
  refund(tokens = 1): void {
    this.#tokens = Math.min(this.size.burst, this.#tokens + tokens);
  }

  #fill(nowMs: number): void {
    const gained = (nowMs - this.#filledMs) * this.size.perSecond / 1000;
    this.#tokens = Math.min(this.size.burst, this.#tokens + gained);
    this.#filledMs = nowMs;
  }
}

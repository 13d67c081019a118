/**
 * Finds out that a silent peer is gone, and keeps a silent path open.
 *
 * Any byte proves life. After `intervalMs` of silence a PING is sent, and when
 * nothing at all comes in time after that, the connection is lost. How long that
 * is follows the path: an answer from far away takes longer.
 *
 * @module
 */

/** When to send a PING and how long to wait. */
export interface KeepaliveOptions {
  readonly intervalMs: number;
  /** How long an answer may take, on a path of short round trips. */
  readonly timeoutMs: number;
  /** However long round trips are; `timeoutMs` unless given. */
  readonly timeoutMsMax?: number;
  /**
   * A firewall or NAT on the way forgets what is silent: a PING is sent after so
   * long, too. Nobody waits for its answer.
   */
  readonly refreshMs?: number;
  /**
   * From then on an answer is late: the peer may be gone, and another connection
   * to it may be better.
   */
  readonly doubtMs?: number;
}

/** What is due at a deadline. */
export type KeepaliveDue = "nothing" | "refresh" | "ping" | "doubt" | "lost";

/** So many round trips, for one lost packet costs some of them. */
const TIMEOUT_ROUND_TRIPS = 4;

export class Keepalive {
  readonly #options: KeepaliveOptions;
  #askedMs = -Infinity;
  #refreshedMs = -Infinity;
  /** When it was reported that the answer to a PING is late. */
  #doubtedMs = -Infinity;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
  }

  /**
   * When {@linkcode due} must be called next.
   *
   * @param rttMs What a round trip takes; 0 when it is not known.
   */
  nextDeadlineMs(lastHeardMs: number, rttMs: number): number {
    const { intervalMs } = this.#options;
    if (this.#isAsking(lastHeardMs)) {
      const lostMs = this.#askedMs + this.#timeoutMs(rttMs);
      return Math.min(lostMs, this.#nextDoubtMs(rttMs));
    }
    return Math.min(lastHeardMs + intervalMs, this.#nextRefreshMs(lastHeardMs));
  }

  /** What to do now; `ping` and `refresh` count as done. */
  due(lastHeardMs: number, rttMs: number, nowMs: number): KeepaliveDue {
    if (nowMs < this.nextDeadlineMs(lastHeardMs, rttMs)) return "nothing";
    if (this.#isAsking(lastHeardMs)) {
      if (nowMs >= this.#askedMs + this.#timeoutMs(rttMs)) return "lost";
      this.#doubtedMs = this.#askedMs;
      return "doubt";
    }
    if (nowMs < lastHeardMs + this.#options.intervalMs) {
      this.#refreshedMs = nowMs;
      return "refresh";
    }
    this.#askedMs = nowMs;
    return "ping";
  }

  /** A PING was sent for another reason: its answer is waited for as well. */
  asked(lastHeardMs: number, nowMs: number): void {
    if (!this.#isAsking(lastHeardMs)) this.#askedMs = nowMs;
  }

  #isAsking(lastHeardMs: number): boolean {
    return this.#askedMs > lastHeardMs;
  }

  #nextDoubtMs(rttMs: number): number {
    if (this.#doubtedMs === this.#askedMs) return Infinity;
    const { doubtMs = Infinity } = this.#options;
    return this.#askedMs + Math.max(doubtMs, TIMEOUT_ROUND_TRIPS * rttMs);
  }

  #nextRefreshMs(lastHeardMs: number): number {
    const { refreshMs = Infinity } = this.#options;
    return Math.max(lastHeardMs, this.#refreshedMs) + refreshMs;
  }

  #timeoutMs(rttMs: number): number {
    const { timeoutMs, timeoutMsMax = timeoutMs } = this.#options;
    const wantedMs = Math.max(timeoutMs, TIMEOUT_ROUND_TRIPS * rttMs);
    return Math.min(wantedMs, timeoutMsMax);
  }
}

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
}

/** What is due at a deadline. */
export type KeepaliveDue = "nothing" | "refresh" | "ping" | "lost";

/** So many round trips, for one lost packet costs some of them. */
const TIMEOUT_ROUND_TRIPS = 4;

export class Keepalive {
  readonly #options: KeepaliveOptions;
  #askedMs = -Infinity;
  #refreshedMs = -Infinity;

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
    if (this.#askedMs > lastHeardMs) {
      return this.#askedMs + this.#timeoutMs(rttMs);
    }
    return Math.min(lastHeardMs + intervalMs, this.#nextRefreshMs(lastHeardMs));
  }

  /** What to do now; `ping` and `refresh` count as done. */
  due(lastHeardMs: number, rttMs: number, nowMs: number): KeepaliveDue {
    if (nowMs < this.nextDeadlineMs(lastHeardMs, rttMs)) return "nothing";
    if (this.#askedMs > lastHeardMs) return "lost";
    if (nowMs < lastHeardMs + this.#options.intervalMs) {
      this.#refreshedMs = nowMs;
      return "refresh";
    }
    this.#askedMs = nowMs;
    return "ping";
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

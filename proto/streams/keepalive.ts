/**
 * Finds out that a silent peer is gone, and keeps a silent path open.
 *
 * After `intervalMs` of silence a PING is sent, and when neither its answer nor
 * anything else comes for long enough, the connection is lost. How long that is
 * follows the path: an answer from far away takes longer, and one behind a slow
 * download comes when the download lets it. Bytes from a peer postpone the
 * deadline without answering the PING: the path to it may be cut while the path
 * from it is open.
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
   * A firewall or NAT on the path forgets silent connections: a PING is also
   * sent after this time, without waiting for its answer.
   */
  readonly refreshMs?: number;
  /**
   * After this time an answer is late: the peer may be gone, and another
   * connection to it may be better.
   */
  readonly doubtMs?: number;
  /** A peer that sends a PING is sent one together with the answer. */
  readonly asksBack?: boolean;
}

/** The action at a deadline. */
type KeepaliveDue = "nothing" | "refresh" | "ping" | "doubt" | "lost";

/** So many round trips, for one lost packet costs some of them. */
const TIMEOUT_ROUND_TRIPS = 4;

export class Keepalive {
  /** When the PING was sent that waits for its answer. */
  #askedMs: number | undefined;
  #answeredMs = -Infinity;
  #refreshedMs = -Infinity;
  /** It was reported that its answer is late. */
  #isDoubted = false;

  constructor(private readonly options: KeepaliveOptions) {}

  /**
   * When {@linkcode due} must be called next.
   *
   * @param rttMs What a round trip takes; 0 when it is not known.
   */
  nextDeadlineMs(lastHeardMs: number, rttMs: number): number {
    if (this.#askedMs === undefined) {
      const { intervalMs } = this.options;
      const refreshMs = this.#nextRefreshMs(lastHeardMs);
      return Math.min(lastHeardMs + intervalMs, refreshMs);
    }
    const sinceMs = Math.max(this.#askedMs, lastHeardMs);
    const lostMs = sinceMs + this.#timeoutMs(rttMs);
    return this.#isDoubted
      ? lostMs
      : Math.min(lostMs, sinceMs + this.#doubtMs(rttMs));
  }

  /** What to do now; `ping` and `refresh` count as done. */
  due(lastHeardMs: number, rttMs: number, nowMs: number): KeepaliveDue {
    if (nowMs < this.nextDeadlineMs(lastHeardMs, rttMs)) return "nothing";
    if (this.#askedMs !== undefined) {
      const sinceMs = Math.max(this.#askedMs, lastHeardMs);
      if (nowMs >= sinceMs + this.#timeoutMs(rttMs)) return "lost";
      this.#isDoubted = true;
      return "doubt";
    }
    if (nowMs < lastHeardMs + this.options.intervalMs) {
      this.#refreshedMs = nowMs;
      return "refresh";
    }
    this.asked(nowMs);
    return "ping";
  }

  /** A PING was sent, for any reason: its answer is awaited. */
  asked(nowMs: number): void {
    if (this.#askedMs !== undefined) return;
    this.#askedMs = nowMs;
    this.#isDoubted = false;
  }

  /** Any PING was answered: the way there and back is open. */
  answered(nowMs: number): void {
    this.#askedMs = undefined;
    this.#answeredMs = nowMs;
  }

  /**
   * The peer asks: whether to ask it as well, in the same packet. Its question
   * proves nothing about the path to it, which alone may be cut.
   */
  asksBack(nowMs: number): boolean {
    const { intervalMs, asksBack = false } = this.options;
    return asksBack && this.#askedMs === undefined &&
      nowMs - this.#answeredMs >= intervalMs / 2;
  }

  #doubtMs(rttMs: number): number {
    const { doubtMs = Infinity } = this.options;
    return Math.max(doubtMs, TIMEOUT_ROUND_TRIPS * rttMs);
  }

  #nextRefreshMs(lastHeardMs: number): number {
    const { refreshMs = Infinity } = this.options;
    return Math.max(lastHeardMs, this.#refreshedMs) + refreshMs;
  }

  #timeoutMs(rttMs: number): number {
    const { timeoutMs, timeoutMsMax = timeoutMs } = this.options;
    const wantedMs = Math.max(timeoutMs, TIMEOUT_ROUND_TRIPS * rttMs);
    return Math.min(wantedMs, timeoutMsMax);
  }
}

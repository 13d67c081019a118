/**
 * Finds out that a silent peer is gone.
 *
 * Any byte proves life. After `intervalMs` of silence a PING is sent, and when
 * nothing at all comes for `timeoutMs` after that the connection is lost.
 *
 * @module
 */

/** When to send a PING and how long to wait. */
export interface KeepaliveOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** What is due at a deadline. */
export type KeepaliveDue = "nothing" | "ping" | "lost";

export class Keepalive {
  readonly #options: KeepaliveOptions;
  #askedMs = -Infinity;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
  }

  /** When {@linkcode due} must be called next. */
  nextDeadlineMs(lastHeardMs: number): number {
    return this.#askedMs > lastHeardMs
      ? this.#askedMs + this.#options.timeoutMs
      : lastHeardMs + this.#options.intervalMs;
  }

  /** What to do now; `ping` counts as done. */
  due(lastHeardMs: number, nowMs: number): KeepaliveDue {
    if (nowMs < this.nextDeadlineMs(lastHeardMs)) return "nothing";
    if (this.#askedMs > lastHeardMs) return "lost";
    this.#askedMs = nowMs;
    return "ping";
  }
}

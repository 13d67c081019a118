/**
 * Ends a connection towards a Go peer as gently as its protocol allows.
 *
 * Konnectivity has no half-close: CLOSE_REQ ends both directions, and its agent
 * drops what it has not yet written to the target (SPEC.md, "What cannot be
 * saved"). So after our `end()` the CLOSE_REQ waits: while there is a reader,
 * until nothing has moved for a while, so that an answer on its way arrives;
 * when there is none, for as long as the agent's queue may take to drain.
 *
 * @module
 */

import type { Timer, Timers } from "../sync/clock.ts";
import type { PacketConduit } from "./packet_conduit.ts";

/**
 * How long nothing must have moved. Longer loses less with targets that think
 * before they answer; shorter frees closed connections sooner.
 */
export const CLOSE_QUIET_MS = 2_000;

/**
 * How long CLOSE_REQ waits after the last bytes when there is no reader: an
 * agent on a busy machine has written them by then. Tests that closed
 * connections are gone wait for longer (upstream's: 0.4 s).
 */
export const GONE_QUIET_MS = 250;

/**
 * The slowest target whose queue at the agent is waited for, 1 MiB/s; the wait
 * for the queue and the last bytes ends after {@linkcode CLOSE_QUIET_MS} all the same.
 */
export const DRAIN_BYTES_PER_MS = 1024;

/** How long a Go peer may take to answer CLOSE_REQ; its own client waits 10 s. */
export const CLOSE_RSP_WAIT_MS = 10_000;

export class QuietClose {
  #timer: Timer | undefined;
  #hasMoved = false;
  #isRunning = false;
  /** When the agent has passed on what we sent, if its target is not too slow. */
  #drainedMs: number;

  /**
   * @param sendClose Sends CLOSE_REQ.
   * @param unanswered What is wrong when no answer to that comes.
   */
  constructor(
    private readonly timers: Timers,
    private readonly conduit: Pick<PacketConduit, "unconsumedBytes" | "reset">,
    private readonly sendClose: () => void,
    private readonly unanswered: string,
  ) {
    // Early data has left by now, by another way.
    this.#drainedMs = timers.now();
  }

  /**
   * Our direction has ended: waits for quiet from now on.
   *
   * @param isGone There is no reader for an answer (`Conduit.end`).
   */
  start(isGone = false): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    if (!isGone) return this.#wait();
    const waitMs = this.#drainedMs + GONE_QUIET_MS - this.timers.now();
    if (waitMs <= 0) this.#close();
    else this.#timer = this.timers.after(waitMs, () => this.#close());
  }

  /** Bytes were sent. Called for every packet. */
  sent(bytes: number): void {
    this.#hasMoved = true;
    const now = this.timers.now();
    const drained = Math.max(this.#drainedMs, now) +
      bytes / DRAIN_BYTES_PER_MS;
    this.#drainedMs = Math.min(drained, now + CLOSE_QUIET_MS - GONE_QUIET_MS);
  }

  /** Something came, or was passed on. Cheap: called for every piece. */
  touch(): void {
    this.#hasMoved = true;
  }

  cancel(): void {
    this.#timer?.cancel();
  }

  #wait(): void {
    this.#hasMoved = false;
    this.#timer = this.timers.after(CLOSE_QUIET_MS, () => {
      const isBusy = this.#hasMoved || this.conduit.unconsumedBytes > 0;
      if (isBusy) return this.#wait();
      this.#close();
    });
  }

  #close(): void {
    this.sendClose();
    this.#timer = this.timers.after(CLOSE_RSP_WAIT_MS, () =>
      this.conduit.reset(
        `Cannot close the connection in order: ${this.unanswered} within ` +
          `${CLOSE_RSP_WAIT_MS / 1000} s`,
      ));
  }
}

/**
 * Whether the peer is there, and how far away: when it was heard, the PINGs to
 * it and what their answers say.
 *
 * @module
 */

import type { Clock } from "../sync/clock.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { Keepalive, type KeepaliveOptions } from "./keepalive.ts";
import { PathRtt } from "./path_rtt.ts";
import { type PingPurpose, PingTracker } from "./ping_tracker.ts";

/** See the module description. */
export class Liveness {
  readonly rtt: PathRtt = new PathRtt();
  lastHeardMs: number;
  readonly #pings = new PingTracker();
  readonly #keepalive: Keepalive | undefined;
  readonly #writer: FrameWriter;
  readonly #clock: Clock;

  constructor(
    writer: FrameWriter,
    clock: Clock,
    keepalive: KeepaliveOptions | undefined,
  ) {
    this.#writer = writer;
    this.#clock = clock;
    this.lastHeardMs = clock.now();
    this.#keepalive = keepalive && new Keepalive(keepalive);
  }

  /** When {@linkcode check} is due. */
  get nextDeadlineMs(): number {
    return this.#keepalive?.nextDeadlineMs(this.lastHeardMs) ?? Infinity;
  }

  /** Sends a PING. */
  ping(purpose: PingPurpose): void {
    this.#writer.ping(false, this.#pings.begin(purpose, this.#clock.now()));
  }

  /** Takes an answer; gives what it was for, or `undefined` if not ours. */
  onPingAck(opaque: Uint8Array, nowMs: number): PingPurpose | undefined {
    const answer = this.#pings.answer(opaque, nowMs);
    if (answer !== undefined) this.rtt.sample(answer.rttMs, nowMs);
    return answer?.purpose;
  }

  /** Asks a silent peer; gives the reason once it has to be given up. */
  check(nowMs: number): Error | undefined {
    switch (this.#keepalive?.due(this.lastHeardMs, nowMs)) {
      case "ping":
        this.ping("keepalive");
        return undefined;
      case "lost":
        return new Error(
          `Cannot reach the peer: no answer to PING, silent for ${
            Math.round(nowMs - this.lastHeardMs)
          } ms`,
        );
      default:
        return undefined;
    }
  }
}

/**
 * How large the connection's receive window should be: enough to keep the road
 * full, and little more, for whatever is granted beyond that waits in a queue,
 * in the kernel or on the line, in front of everything that comes later.
 *
 * Each round trip tells how many octets came and how long it took. While they
 * fill half of the window and no queue builds up, the window grows. When round
 * trips get longer it becomes what the road carried of late in a round trip
 * without queues, and some more for what is repeated after a loss. Credit comes
 * back on receipt, so a window becomes smaller by giving none for a while.
 *
 * Others may fill the line's queue too, and must not be mistaken for us. So
 * when the least round trip was not seen for long, the window is halved for a
 * few rounds: if that does not empty the queue it is not ours, and belongs to
 * the road. (BBR's ProbeRTT, from the receiving end.)
 *
 * @module
 */

import { type PathRtt, RTT_NOISE_MS } from "./path_rtt.ts";

/** The window never gets smaller: two frames of ours. */
export const ROAD_WINDOW_OCTETS_MIN: number = 128 * 1024;

/** The window beyond what is on the road; a lost packet holds up the rest. */
const HEADROOM = 1.5;

/** Growth per round trip until the first queue was seen, and after it. */
const FIRST_GROWTH = 2;
const LATER_GROWTH = 1.25;

/** A window that makes round trips so much longer than the least is enough. */
const QUEUE_RATIO = 1.25;

/** Rounds over which the rate is taken: a loss holds octets up, then they burst. */
const RATE_ROUNDS = 8;

/** One round to use up what was granted, two that measure. */
const DRAIN_ROUNDS = 3;

interface Round {
  readonly octets: number;
  readonly ms: number;
}

/** See the module description. */
export class RoadWindow {
  readonly #rtt: PathRtt;
  readonly #octetsMax: number;
  readonly #rounds: Round[] = [];
  #octets: number;
  #growth = FIRST_GROWTH;
  #drainRoundsLeft = 0;

  /**
   * @param octets Where it starts.
   * @param octetsMax How far it may grow.
   */
  constructor(rtt: PathRtt, octets: number, octetsMax: number) {
    this.#rtt = rtt;
    this.#octets = octets;
    this.#octetsMax = octetsMax;
  }

  /** What the window should be now. */
  get octets(): number {
    if (this.#drainRoundsLeft === 0) return this.#octets;
    return Math.max(ROAD_WINDOW_OCTETS_MIN, this.#octets / 2);
  }

  /** The window is made smaller to measure the road without our queue. */
  get isDraining(): boolean {
    return this.#drainRoundsLeft > 0;
  }

  /** A round trip of `rttMs` is over, in which `octets` came. */
  onRound(octets: number, rttMs: number, nowMs: number): void {
    if (this.#rounds.length === RATE_ROUNDS) this.#rounds.shift();
    this.#rounds.push({ octets, ms: rttMs });
    if (this.#drainRoundsLeft > 0) {
      this.#drainRoundsLeft--;
      return;
    }
    // Who sends less than the window allows is not held back by it, and what
    // queues up is not his.
    const used = Math.max(octets, this.#perTurn(octets, rttMs));
    if (used * 2 < this.#octets) return;
    if (this.#rtt.isMinimumOld(nowMs)) return this.#drain();
    if (this.#rtt.isInflated) this.#fit();
    else if (!this.#isQueueing(rttMs)) this.#grow(octets, rttMs);
  }

  /** Between this and inflation the window is right. One late answer will do. */
  #isQueueing(rttMs: number): boolean {
    const { minMs } = this.#rtt;
    return rttMs > minMs * QUEUE_RATIO && rttMs > minMs + RTT_NOISE_MS;
  }

  /**
   * What the road carries in a round trip and a turn of both event loops. On
   * loopback the round trip is shorter than such a turn, in which hundreds of
   * KiB are moved.
   */
  #perTurn(octets: number, ms: number): number {
    const turnMs = Math.min(ms, this.#rtt.minMs) + RTT_NOISE_MS;
    return ms > 0 ? octets * turnMs / ms : octets;
  }

  #grow(octets: number, rttMs: number): void {
    const wanted = this.#perTurn(octets, rttMs) * 2;
    const step = this.#octets * this.#growth;
    this.#set(Math.max(this.#octets, Math.min(wanted, step)));
  }

  /** As much as was carried of late, without the queue. */
  #fit(): void {
    this.#growth = LATER_GROWTH;
    let [octets, ms] = [0, 0];
    for (const round of this.#rounds) {
      octets += round.octets;
      ms += round.ms;
    }
    const wanted = this.#perTurn(octets, ms) * HEADROOM;
    const less = Math.min(this.#octets, wanted);
    this.#set(Math.max(less, this.#octets / 2));
  }

  #drain(): void {
    this.#drainRoundsLeft = DRAIN_ROUNDS;
    this.#rtt.forgetMinimum();
  }

  #set(octets: number): void {
    this.#octets = Math.round(
      Math.min(this.#octetsMax, Math.max(ROAD_WINDOW_OCTETS_MIN, octets)),
    );
  }
}

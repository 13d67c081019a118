/**
 * Whether the peer is there, and how far away: when its last byte came, the
 * PINGs to it and the round trips that they measure.
 *
 * @module
 */

import type { Clock } from "../sync/clock.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { Keepalive, type KeepaliveOptions } from "./keepalive.ts";
import { readUint32, writeUint32 } from "../bytes/byte_arrays.ts";

/**
 * A peer that has answered within its last round trip lives; nothing can be known
 * better. Queues make round trips long, so an answer counts no longer than this.
 */
const ALIVE_MS_MAX = 500;

/** The answer of a peer that is so near is waited for: that costs less than a doubt. */
export const NEAR_MS = 10;

/**
 * Long packets are tried at most this often. A path that drops them lets PINGs
 * pass, and the first long packet would block everything after it.
 */
const PAD_PAUSE_MS = 10;

export class Liveness {
  readonly rtt: PathRtt = new PathRtt();
  lastHeardMs: number;
  /** When a PING was answered last: the way there and back was open. */
  answeredMs = -Infinity;
  /** Callers that wait for an answer. */
  #awaiting: (() => void)[] = [];
  /** Waits for the answer to a new PING. */
  #echoed: (() => void) | undefined;
  readonly #pings = new PingTracker();
  #keepalive: Keepalive | undefined;
  /** When the first PING left that nothing may have answered. */
  #askedMs = -Infinity;
  #paddedMs = -Infinity;

  constructor(
    private readonly writer: FrameWriter,
    private readonly clock: Clock,
    keepalive: KeepaliveOptions | undefined,
  ) {
    this.lastHeardMs = clock.now();
    this.#keepalive = keepalive && new Keepalive(keepalive);
  }

  /** When {@linkcode check} is due. */
  get nextDeadlineMs(): number {
    return this.#keepalive?.nextDeadlineMs(this.lastHeardMs, this.#rttMs) ??
      Infinity;
  }

  /** From now on; answers to earlier questions are not awaited. */
  keepAlive(options: KeepaliveOptions): void {
    this.#keepalive = new Keepalive(options);
  }

  get #rttMs(): number {
    return this.rtt.smoothedMs ?? 0;
  }

  /**
   * Since when a PING waits for its answer; `undefined`: none does. Other bytes
   * do not count: the way to the peer may be cut, and the way back be open.
   */
  get askedMs(): number | undefined {
    return this.#askedMs > this.answeredMs ? this.#askedMs : undefined;
  }

  /** A PING was answered so recently that the peer is alive and reachable. */
  get isProven(): boolean {
    return this.clock.now() - this.answeredMs < this.#aliveMs;
  }

  /** Calls `then` when {@linkcode isProven}: now, or with the next answer. */
  whenAlive(then: () => void): void {
    // Also while it is proven, so that a busy connection always is.
    if (!this.#pings.isUnderWay("life")) {
      this.pad();
      this.askForLife();
    }
    if (this.isProven) then();
    else this.#awaiting.push(then);
  }

  /** Answers from now on show that a full packet passes, too. */
  pad(): void {
    const nowMs = this.clock.now();
    if (nowMs < this.#paddedMs + PAD_PAUSE_MS) return;
    this.#paddedMs = nowMs;
    this.writer.padding();
  }

  get #aliveMs(): number {
    if (this.rtt.minMs < NEAR_MS) return 0;
    return Math.min(this.#rttMs, ALIVE_MS_MAX);
  }

  /** Sends a PING. */
  ping(purpose: PingPurpose): void {
    if (this.askedMs === undefined) this.#askedMs = this.clock.now();
    this.writer.ping(false, this.#pings.begin(purpose, this.clock.now()));
  }

  /** The peer asks for a sign of life: it may owe one, too. */
  onPing(nowMs: number): void {
    if (this.#keepalive?.asksBack(nowMs) === true) this.askForLife();
  }

  /**
   * Takes an answer; returns the purpose of its PING, or `undefined` if it is
   * not ours.
   */
  onPingAck(opaque: Uint8Array, nowMs: number): PingPurpose | undefined {
    const answer = this.#pings.answer(opaque, nowMs);
    if (answer !== undefined) {
      this.rtt.sample(answer.rttMs, nowMs);
      this.#keepalive?.answered(nowMs);
      this.answeredMs = nowMs;
      if (answer.purpose === "echo") this.#echoed?.();
    }
    return answer?.purpose;
  }

  /** Tells the callers that waited for an answer. */
  proven(): void {
    if (this.#awaiting.length === 0) return;
    const awaiting = this.#awaiting;
    this.#awaiting = [];
    for (const then of awaiting) then();
  }

  /**
   * Calls `then` when the peer has read all that was sent to it until now. Another
   * call counts instead.
   */
  echo(then: () => void): void {
    this.#echoed = then;
    this.ping("echo");
  }

  /** Asks for a sign of life, and waits for it as if the peer had been silent. */
  askForLife(): void {
    this.#keepalive?.asked(this.clock.now());
    this.ping("life");
  }

  /**
   * Sends a PING to a silent peer.
   *
   * @returns The error once it has to be given up; `doubt` when its answer is
   *   late.
   */
  check(nowMs: number): Error | "doubt" | undefined {
    switch (this.#keepalive?.due(this.lastHeardMs, this.#rttMs, nowMs)) {
      case "refresh":
      case "ping":
        this.ping("keepalive");
        return undefined;
      case "doubt":
        return "doubt";
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

/** The purpose of a PING; the number goes into its bytes. */
export const PingPurpose = {
  keepalive: 1,
  probe: 2,
  drain: 3,
  life: 4,
  echo: 5,
} as const;

/** See {@linkcode PingPurpose}. */
export type PingPurpose = keyof typeof PingPurpose;

const PURPOSES = Object.keys(PingPurpose) as PingPurpose[];

/** An answered PING. */
export interface PingAnswer {
  readonly purpose: PingPurpose;
  readonly rttMs: number;
}

/** Written and copied within one call, so one for all is enough. */
const opaqueBytes = new Uint8Array(8);

interface SentPing {
  readonly serial: number;
  readonly sentMs: number;
}

/**
 * The PINGs that we sent and what each was for (RFC 9113 §6.7).
 *
 * At most one of each purpose is under way, and its bytes name it, so no answer
 * is taken for another's, and a made-up one is ignored.
 */
export class PingTracker {
  readonly #sent: Partial<Record<PingPurpose, SentPing | undefined>> = {};
  #serial = 0;

  /** True while a PING for `purpose` is unanswered. */
  isUnderWay(purpose: PingPurpose): boolean {
    return this.#sent[purpose] !== undefined;
  }

  /** Bytes for a new PING, valid until the next call of any tracker. */
  begin(purpose: PingPurpose, nowMs: number): Uint8Array {
    this.#serial = (this.#serial + 1) >>> 0;
    this.#sent[purpose] = { serial: this.#serial, sentMs: nowMs };
    writeUint32(opaqueBytes, 0, PingPurpose[purpose]);
    writeUint32(opaqueBytes, 4, this.#serial);
    return opaqueBytes;
  }

  /** The PING that was answered; `undefined` if it is none of ours. */
  answer(opaque: Uint8Array, nowMs: number): PingAnswer | undefined {
    const purpose = PURPOSES.find((name) =>
      PingPurpose[name] === readUint32(opaque, 0)
    );
    if (purpose === undefined) return undefined;
    const sent = this.#sent[purpose];
    if (sent?.serial !== readUint32(opaque, 4)) return undefined;
    this.#sent[purpose] = undefined;
    return { purpose, rttMs: nowMs - sent.sentMs };
  }
}

// How long a round trip takes, from the PINGs that measured it: without queues
// on the way (the minimum), and now.
//
// The minimum is needed to tell a queue from a long path, and a path may
// change. So it is trusted for a while, and then measured again by the code
// that can drain the queue of its own traffic (`receiving_side.ts`).

/**
 * Below this much over the minimum it is the jitter of event loops, not a
 * queue on the path: on loopback 0.1 ms becomes 3 ms by one garbage collection.
 */
export const RTT_NOISE_MS = 10;

/** Above this multiple of the minimum, queues on the path are filling. */
const RTT_INFLATION_MAX = 1.5;

/** The minimum is doubted when no sample came near it for this long. */
export const MINIMUM_LIFE_MS = 10_000;

/** A path this near to its minimum has no queue. */
const NEAR_RATIO = 1.1;

/** Weight of a new sample, as in RFC 6298 §2. */
const SMOOTHING = 1 / 8;

/**
 * A queue lasts, and one lost packet delays one answer. So the present round
 * trip is the least of this many samples.
 */
const RECENT_SAMPLES = 3;

export class PathRtt {
  #smoothedMs: number | undefined;
  #minMs = Infinity;
  /** When a sample was near the minimum last. */
  #nearMs = -Infinity;
  #recentMs: readonly number[] = [];

  /** Smoothed over recent samples; `undefined` before the first. */
  get smoothedMs(): number | undefined {
    return this.#smoothedMs;
  }

  /** The newest sample; `undefined` before the first. */
  get lastMs(): number | undefined {
    return this.#recentMs.at(-1);
  }

  /** The round trip without queues, as far as known; `Infinity` before. */
  get minMs(): number {
    return this.#minMs;
  }

  /** The present round trip, queues included; 0 before the first sample. */
  get currentMs(): number {
    return this.#recentMs.length === 0 ? 0 : Math.min(...this.#recentMs);
  }

  /** Queues on the way are filling. */
  get isInflated(): boolean {
    const { currentMs } = this;
    return currentMs > this.#minMs * RTT_INFLATION_MAX &&
      currentMs > this.#minMs + RTT_NOISE_MS;
  }

  /** The minimum was not seen for long: is it still true? */
  isMinimumOld(nowMs: number): boolean {
    return nowMs > this.#nearMs + MINIMUM_LIFE_MS;
  }

  /** The next samples set the minimum. */
  forgetMinimum(): void {
    this.#minMs = Infinity;
  }

  /** Takes one measurement. */
  sample(rttMs: number, nowMs: number): void {
    // Not `push`, which makes room for seventeen.
    this.#recentMs = this.#recentMs.slice(1 - RECENT_SAMPLES).concat(rttMs);
    const isNear = rttMs <= this.#minMs * NEAR_RATIO ||
      rttMs <= this.#minMs + RTT_NOISE_MS / 2;
    if (isNear) this.#nearMs = nowMs;
    this.#minMs = Math.min(this.#minMs, rttMs);
    this.#smoothedMs = this.#smoothedMs === undefined
      ? rttMs
      : this.#smoothedMs + (rttMs - this.#smoothedMs) * SMOOTHING;
  }
}

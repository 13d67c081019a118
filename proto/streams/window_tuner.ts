/**
 * How far receive windows may grow: those of streams here, the connection's in
 * `receiving_side.ts`. Both live by rounds, which are round trips of a PING that
 * is sent while data comes in bulk.
 *
 * Credit that was granted cannot be taken back, so a stream starts small and
 * earns more only by being read: one that used up more than half of its window
 * within a round was held back by the window, and gets four times of it. One
 * that used up half of it in less time than a round trip takes need not wait
 * for the end of a round.
 *
 * Round trips on loopback are shorter than one turn of an event loop, in which
 * hundreds of KiB are moved; so up to a mark having used half of the window is
 * enough. When round trips get longer, more credit would only fill queues on
 * the path: growth stops.
 *
 * @module
 */

import type { PathRtt } from "./liveness.ts";
import type { ReceiveWindow } from "./flow_window.ts";

/** Streams' windows reach this by use alone; measured best for loopback. */
export const FAST_WINDOW_BYTES: number = 1024 * 1024;

/**
 * What all streams of a connection may have together above their start. It
 * bounds what a peer can pin with streams that were read once and then stall.
 */
export const GROWN_BYTES_MAX: number = 64 * 1024 * 1024;

/**
 * A window becomes this many times what was used of it in a round. A round is
 * longer than a round trip, and the kernel's slow start (BBR: 2.9 per round
 * trip) should not have to wait for us.
 */
const STREAM_GROWTH = 4;

/** Pause between probes when the last one changed nothing. */
export const PROBE_PAUSE_MS = 20;

/** The round of a window whose stream is over: it grows no more. */
const ROUND_OVER = -1;

/** What the tuner needs of a stream. */
export interface TunedWindow {
  readonly receiveWindow: ReceiveWindow;
  /** Bytes consumed in the running round; kept for the tuner. */
  roundBytes: number;
  /** The round that `roundBytes` belongs to. */
  round: number;
  /** Half of the window was used up since it grew last. */
  hasUsedHalf: boolean;
  /** When half of it was used up last, in whole milliseconds. */
  halfUsedMs: number;
  /** Grows the window and announces it; nothing if the stream is over. */
  growWindow(bytes: number): void;
}

/** What the tuner needs of the connection's window. */
export interface TunedConnection {
  /**
   * A round is over, in which `bytes` came.
   *
   * @returns Whether the window became larger.
   */
  afterRound(bytes: number, nowMs: number): boolean;
}

/** What a `WindowTuner` is made of. */
interface TunerParts {
  readonly rtt: PathRtt;
  readonly connection: TunedConnection;
  /** How far a stream's window may grow. */
  readonly streamWindowMax: number;
  /** Sends the PING whose answer comes to `onProbeAnswer`. */
  sendProbe(): void;
}

export class WindowTuner {
  #round = 0;
  #isProbing = false;
  /** The running round was begun by the connection's window. */
  #isConnections = false;
  // Kept separately: a stream that does not grow must not slow the others.
  #nextStreamProbeMs = -Infinity;
  #nextConnectionProbeMs = -Infinity;
  #connectionBytes = 0;
  #grownBytes = 0;
  #touched: TunedWindow[] = [];

  constructor(private readonly parts: TunerParts) {}

  /** Bytes by which all streams' windows are larger than at their start. */
  get grownBytes(): number {
    return this.#grownBytes;
  }

  /** `bytes` of `window` can be granted again. */
  onConsumed(window: TunedWindow, bytes: number): void {
    if (!this.#isProbing) return;
    if (window.round !== this.#round) this.#touch(window);
    window.roundBytes += bytes;
  }

  /** Half of `window` is used up: it moves in bulk. */
  onHalfUsed(window: TunedWindow, nowMs: number): void {
    window.hasUsedHalf = true;
    if (this.#isFasterThanRoundTrips(window, nowMs)) {
      this.#enlarge(window, window.receiveWindow.size * 2);
    }
    window.halfUsedMs = Math.trunc(nowMs);
    if (this.#isProbing || nowMs < this.#nextStreamProbeMs) return;
    this.#begin(false);
    this.#touch(window);
  }

  /** `bytes` came, of any stream. */
  onReceived(bytes: number): void {
    this.#connectionBytes += bytes;
  }

  /** Much of the connection's window is used up. */
  onConnectionUsed(nowMs: number): void {
    if (this.#isProbing || nowMs < this.#nextConnectionProbeMs) return;
    this.#begin(true);
  }

  #begin(isConnections: boolean): void {
    this.#isProbing = true;
    this.#isConnections = isConnections;
    this.#round++;
    this.#connectionBytes = 0;
    this.parts.sendProbe();
  }

  #touch(window: TunedWindow): void {
    window.round = this.#round;
    window.roundBytes = 0;
    this.#touched.push(window);
  }

  /** The round trip is over (and its duration is in the `PathRtt`). */
  onProbeAnswer(nowMs: number): void {
    const touched = this.#touched;
    this.#touched = [];
    this.#isProbing = false;
    const { rtt, connection } = this.parts;
    let hasGrown = connection.afterRound(this.#connectionBytes, nowMs);
    if (!rtt.isInflated) {
      for (const window of touched) {
        const isOver = window.round === ROUND_OVER;
        if (!isOver && this.#grow(window)) hasGrown = true;
      }
    }
    const nextMs = hasGrown ? nowMs : nowMs + PROBE_PAUSE_MS;
    if (this.#isConnections) this.#nextConnectionProbeMs = nextMs;
    else this.#nextStreamProbeMs = nextMs;
  }

  /** A stream is over: its growth is free for others. */
  onClosed(window: TunedWindow): void {
    this.#grownBytes -= window.receiveWindow.grownBytes;
    window.round = ROUND_OVER; // It may be touched in the running round.
  }

  #isFasterThanRoundTrips(window: TunedWindow, nowMs: number): boolean {
    const { rtt } = this.parts;
    if (rtt.smoothedMs === undefined || rtt.isInflated) return false;
    // Larger windows are announced before half of them is used up.
    return window.receiveWindow.size < FAST_WINDOW_BYTES &&
      nowMs - window.halfUsedMs <= rtt.smoothedMs;
  }

  #grow(window: TunedWindow): boolean {
    const { size } = window.receiveWindow;
    const isFast = size < FAST_WINDOW_BYTES && window.hasUsedHalf;
    const used = isFast ? size : window.roundBytes * this.#pathPart();
    if (used * 2 <= size) return false;
    return this.#enlarge(window, Math.min(used, size) * STREAM_GROWTH);
  }

  /**
   * How much of the round was the path; the rest was our own queue, in which a
   * larger window would only hold more. On loopback that is nearly all of it:
   * windows of 10 MB, and as much memory, for a stream that needs one.
   */
  #pathPart(): number {
    const { minMs, lastMs = 0 } = this.parts.rtt;
    return lastMs > minMs ? minMs / lastMs : 1;
  }

  #enlarge(window: TunedWindow, wanted: number): boolean {
    const { size } = window.receiveWindow;
    const target = Math.min(
      wanted,
      this.parts.streamWindowMax,
      size + GROWN_BYTES_MAX - this.#grownBytes,
    );
    if (target <= size) return false;
    this.#grownBytes += target - size;
    window.hasUsedHalf = false;
    window.growWindow(target);
    return true;
  }
}

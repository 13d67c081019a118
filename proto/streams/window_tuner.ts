/**
 * How far receive windows may grow: those of streams, and the connection's.
 *
 * Credit that was granted cannot be taken back, so a stream starts small and
 * earns more only by being read: a PING measures a round trip while a stream
 * moves in bulk, and a stream that used up more than half of its window within
 * it was held back by the window, so it gets twice what it used.
 *
 * Round trips on loopback are shorter than one turn of an event loop, in which
 * hundreds of KiB are moved; so up to a mark having used half of the window is
 * enough. When round trips get longer, more credit would only fill queues on
 * the path: growth stops.
 *
 * The connection's window follows the same estimate. Its credit comes back on
 * receipt, so it pins no memory; it bounds what queues in the kernel.
 *
 * @module
 */

import type { PathRtt } from "./path_rtt.ts";
import type { ReceiveWindow } from "./flow_window.ts";

/** Streams' windows reach this by use alone; measured best for loopback. */
export const FAST_WINDOW_OCTETS: number = 1024 * 1024;

/** The same for the connection's window: a few streams at that speed. */
export const FAST_CONNECTION_WINDOW_OCTETS: number = 4 * 1024 * 1024;

/**
 * What all streams of a connection may have together above their start. It
 * bounds what a peer can pin with streams that were read once and then stall.
 */
export const GROWN_OCTETS_MAX: number = 64 * 1024 * 1024;

/** Pause between probes when the last one changed nothing. */
export const PROBE_PAUSE_MS = 20;

/** The round of a window whose stream is over: it grows no more. */
const ROUND_OVER = -1;

/** How far windows of one kind may grow. */
export interface WindowGrowth {
  /** Up to here having used half of the window is enough. */
  readonly fastOctets: number;
  readonly windowMax: number;
  /** Growth pins memory and counts toward {@linkcode GROWN_OCTETS_MAX}. */
  readonly isPinning: boolean;
}

/** What the tuner needs of a stream, or of the connection. */
export interface TunedWindow {
  readonly growth: WindowGrowth;
  readonly receiveWindow: ReceiveWindow;
  /** Octets consumed in the running round; kept for the tuner. */
  roundOctets: number;
  /** The round that `roundOctets` belongs to. */
  round: number;
  /** Half of the window was used up since it grew last. */
  hasUsedHalf: boolean;
  /** Grows the window and announces it; nothing if the stream is over. */
  growWindow(octets: number): void;
}

/** See the module description. */
export class WindowTuner {
  readonly #rtt: PathRtt;
  readonly #sendProbe: () => void;
  #round = 0;
  #isProbing = false;
  /** Whose use began the running round. */
  #starter: WindowGrowth | undefined;
  /** Per kind of window: one that does not grow must not slow the others. */
  readonly #nextProbeMs: Map<WindowGrowth, number> = new Map();
  #grownOctets = 0;
  #touched: TunedWindow[] = [];

  /** @param sendProbe Sends the PING whose answer comes to `onProbeAnswer`. */
  constructor(rtt: PathRtt, sendProbe: () => void) {
    this.#rtt = rtt;
    this.#sendProbe = sendProbe;
  }

  /** Octets by which all streams' windows are larger than at their start. */
  get grownOctets(): number {
    return this.#grownOctets;
  }

  /** `octets` of `window` can be granted again. */
  onConsumed(window: TunedWindow, octets: number): void {
    if (!this.#isProbing) return;
    if (window.round !== this.#round) this.#touch(window);
    window.roundOctets += octets;
  }

  /** Half of `window` is used up: it moves in bulk. */
  onHalfUsed(window: TunedWindow, nowMs: number): void {
    window.hasUsedHalf = true;
    if (this.#isProbing) return;
    const nextProbeMs = this.#nextProbeMs.get(window.growth);
    if (nextProbeMs !== undefined && nowMs < nextProbeMs) return;
    this.#isProbing = true;
    this.#starter = window.growth;
    this.#round++;
    this.#touch(window);
    this.#sendProbe();
  }

  #touch(window: TunedWindow): void {
    window.round = this.#round;
    window.roundOctets = 0;
    this.#touched.push(window);
  }

  /** The round trip is over (and its duration is in the `PathRtt`). */
  onProbeAnswer(nowMs: number): void {
    const touched = this.#touched;
    this.#touched = [];
    this.#isProbing = false;
    let hasGrown = false;
    if (!this.#rtt.isInflated) {
      for (const window of touched) {
        const isOver = window.round === ROUND_OVER;
        if (!isOver && this.#grow(window)) hasGrown = true;
      }
    }
    if (this.#starter === undefined) return;
    this.#nextProbeMs.set(
      this.#starter,
      hasGrown ? nowMs : nowMs + PROBE_PAUSE_MS,
    );
  }

  /** A stream is over: what it had above its start is free for others. */
  onClosed(window: TunedWindow): void {
    this.#grownOctets -= window.receiveWindow.grownOctets;
    window.round = ROUND_OVER; // It may be touched in the running round.
  }

  #grow(window: TunedWindow): boolean {
    const { size } = window.receiveWindow;
    const { fastOctets, windowMax, isPinning } = window.growth;
    const isFast = size < fastOctets && window.hasUsedHalf;
    const used = isFast ? size : window.roundOctets;
    const wanted = Math.min(used * 2, size * 2, windowMax);
    const allowed = isPinning
      ? size + GROWN_OCTETS_MAX - this.#grownOctets
      : Infinity;
    const target = Math.min(wanted, allowed);
    if (target <= size) return false;
    if (isPinning) this.#grownOctets += target - size;
    window.hasUsedHalf = false;
    window.growWindow(target);
    return true;
  }
}

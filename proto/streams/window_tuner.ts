/**
 * How far the receive windows of streams may grow.
 *
 * Credit that was granted cannot be taken back, so a stream starts small and
 * earns more only by being read: a PING measures a round trip while a stream
 * moves in bulk, and a stream that used up more than half of its window within
 * it was held back by the window, so it gets twice what it used.
 *
 * Round trips on loopback are shorter than one turn of an event loop, in which
 * hundreds of KiB are moved; so up to {@linkcode FAST_WINDOW_OCTETS} having used
 * half of the window is enough. When round trips get longer, more credit would
 * only fill queues on the path: growth stops.
 *
 * @module
 */

import type { PathRtt } from "./path_rtt.ts";
import type { ReceiveWindow } from "./flow_window.ts";

/** Windows reach this by use alone; measured best for loopback. */
export const FAST_WINDOW_OCTETS: number = 1024 * 1024;

/**
 * What all streams of a connection may have together above their start. It
 * bounds what a peer can pin with streams that were read once and then stall.
 */
export const GROWN_OCTETS_MAX: number = 64 * 1024 * 1024;

/** Pause between probes when the last one changed nothing. */
export const PROBE_PAUSE_MS = 20;

/** What the tuner needs of a stream. */
export interface TunedStream {
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
  readonly #windowMax: number;
  readonly #sendProbe: () => void;
  #round = 0;
  #isProbing = false;
  #nextProbeMs = -Infinity;
  #grownOctets = 0;
  #touched: TunedStream[] = [];

  /**
   * @param windowMax The largest window of one stream, in octets.
   * @param sendProbe Sends the PING whose answer comes to `onProbeAnswer`.
   */
  constructor(rtt: PathRtt, windowMax: number, sendProbe: () => void) {
    this.#rtt = rtt;
    this.#windowMax = windowMax;
    this.#sendProbe = sendProbe;
  }

  /** Octets by which all windows together are larger than at their start. */
  get grownOctets(): number {
    return this.#grownOctets;
  }

  /** `stream` passed on `octets`. */
  onConsumed(stream: TunedStream, octets: number): void {
    if (!this.#isProbing) return;
    if (stream.round !== this.#round) {
      stream.round = this.#round;
      stream.roundOctets = 0;
      this.#touched.push(stream);
    }
    stream.roundOctets += octets;
  }

  /** `stream` has used up half of its window: it moves in bulk. */
  onHalfUsed(stream: TunedStream, nowMs: number): void {
    stream.hasUsedHalf = true;
    if (this.#isProbing || nowMs < this.#nextProbeMs) return;
    this.#isProbing = true;
    this.#round++;
    stream.round = this.#round;
    stream.roundOctets = 0;
    this.#touched.push(stream);
    this.#sendProbe();
  }

  /** The round trip is over (and its duration is in the `PathRtt`). */
  onProbeAnswer(nowMs: number): void {
    const touched = this.#touched;
    this.#touched = [];
    this.#isProbing = false;
    let hasGrown = false;
    if (!this.#rtt.isInflated) {
      for (const stream of touched) {
        if (this.#grow(stream)) hasGrown = true;
      }
    }
    this.#nextProbeMs = hasGrown ? nowMs : nowMs + PROBE_PAUSE_MS;
  }

  /** A stream is over: what it had above `startOctets` is free for others. */
  onClosed(stream: TunedStream, startOctets: number): void {
    this.#grownOctets -= stream.receiveWindow.size - startOctets;
  }

  #grow(stream: TunedStream): boolean {
    const { size } = stream.receiveWindow;
    const isFast = size < FAST_WINDOW_OCTETS && stream.hasUsedHalf;
    const used = isFast ? size : stream.roundOctets;
    const wanted = Math.min(used * 2, size * 2, this.#windowMax);
    const allowed = size + GROWN_OCTETS_MAX - this.#grownOctets;
    const target = Math.min(wanted, allowed);
    if (target <= size) return false;
    this.#grownOctets += target - size;
    stream.hasUsedHalf = false;
    stream.growWindow(target);
    return true;
  }
}

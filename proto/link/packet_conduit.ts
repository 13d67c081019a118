/**
 * A conduit whose other end is packets: the state machine that both carriers
 * and every dialect share.
 *
 * What differs (the packet of a half-close, the packet of a reset, where credit
 * goes) is behind {@linkcode ConduitPort}; when things happen is decided here
 * and only here: the order of data, ends and closes, and that a conduit closes
 * exactly once.
 *
 * @module
 */

import type { Timer, Timers } from "../sync/clock.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
  ConduitState,
} from "../transfer/conduit.ts";
import { DatagramGatherer } from "./send_packet.ts";
import type { PacketObserver } from "./link.ts";

/**
 * How long a conduit is kept for its own end after the peer has closed both
 * directions, counted from the last byte that moved. Long enough to deliver
 * earlier bytes to a slow reader, short enough that forgotten conduits do not
 * collect.
 */
export const GONE_LINGER_MS = 10_000;

/**
 * Bytes for a caller that has gone which are dropped before the target is sent
 * a reset. The end of an answer fits; a running download ends soon.
 */
export const GONE_LINGER_BYTES_MAX = 1024 * 1024;

/** Bytes of datagrams that may wait for a slow reader; then they are dropped. */
const DATAGRAM_QUEUE_BYTES_MAX = 256 * 1024;

const NO_BYTES = new Uint8Array(0);

/** How a conduit reaches its peer; one implementation per dialect. */
export interface ConduitPort {
  /** See `ConduitState.windowBytes`. */
  readonly windowBytes?: number | undefined;
  /**
   * Sends the first part of `chunk` that fits, perhaps nothing.
   *
   * @returns Bytes taken. After less than all, the port calls `writable`.
   */
  send(chunk: Uint8Array): number;
  /** Sends `datagram` whole, or drops it. */
  sendDatagram(datagram: Uint8Array): void;
  /**
   * Sends the peer the end of our data.
   *
   * @param isGone See `Conduit.end`.
   * @returns `false` when there is no room now; the port calls `writable`.
   */
  sendEnd(isGone: boolean): boolean;
  /** Sends the peer that both directions are given up. */
  sendReset(reason: string, kind: "reset" | "lost"): void;
  /** Both directions have ended; call `close` now, or when the peer agrees. */
  bothEnded(): void;
  /** Received bytes were passed on, or dropped. */
  credit(bytes: number): void;
  /** The conduit is over: forget it. Nothing is called after this. */
  release(): void;
}

/**
 * What the owner sends: `short` after a write that the port did not take whole;
 * `ending` from `end()` until the port had room to send it, `leaving` if the
 * owner is gone as well; then `ended`.
 */
type Outgoing = "open" | "short" | "ending" | "leaving" | "ended";

/** A conduit that is kept although its peer has gone. */
interface Linger {
  /** What the owner may still write, to be dropped. */
  leftBytes: number;
  timer?: Timer;
  /** Since the timer was set. */
  hasMoved: boolean;
  /** How the peer went, once all is passed on that it had sent; absent: well. */
  readonly end?: ConduitEnd;
}

export class PacketConduit implements Conduit {
  readonly #timers: Timers;
  readonly #gatherer: DatagramGatherer | undefined;
  #events: ConduitEvents | undefined;
  #isClosed = false;
  #outgoing: Outgoing = "open";
  #peerEnded = false;
  #unconsumedBytes = 0;
  /** What arrived before there was a reader; unset once the conduit is open. */
  #held: Uint8Array[] | undefined = [];
  readonly #opensByItself: boolean;
  #heldClose: ConduitEnd | undefined;
  /** Once the peer has gone. */
  #linger: Linger | undefined;

  /**
   * @param options.datagrams Whether one DATA packet is one datagram.
   * @param options.hold Keeps what arrives until `open` is called: the conduit
   *   exists before there is a reader (early data). Otherwise it opens when its
   *   owner attaches; what came before that is delivered right after.
   * @param options.cutsDatagrams Whether the peer is an agent that does.
   */
  constructor(
    private readonly port: ConduitPort,
    options: {
      readonly datagrams: boolean;
      readonly timers: Timers;
      readonly observer: PacketObserver;
      readonly hold?: boolean;
      readonly cutsDatagrams?: boolean;
    },
  ) {
    this.#timers = options.timers;
    this.#gatherer = options.datagrams
      ? new DatagramGatherer(options.observer, options.cutsDatagrams)
      : undefined;
    this.#opensByItself = options.hold !== true;
  }

  get datagrams(): boolean {
    return this.#gatherer !== undefined;
  }

  /** Bytes delivered that have not been passed on. */
  get unconsumedBytes(): number {
    return this.#unconsumedBytes;
  }

  get state(): ConduitState {
    const windowBytes = this.port.windowBytes;
    return {
      unreadBytes: this.#unconsumedBytes,
      unsentBytes: 0,
      isFull: this.#outgoing === "short",
      windowBytes,
    };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether `end` was called. */
  get isEnded(): boolean {
    return this.#outgoing !== "open" && this.#outgoing !== "short";
  }

  /** Whether the peer has ended its data. */
  get peerEnded(): boolean {
    return this.#peerEnded;
  }

  // ---- towards the owner (Conduit) ----

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError(
        "Cannot attach to a conduit: it has a handler already",
      );
    }
    this.#events = events;
    if (!this.#opensByItself) return;
    // No caller expects events from inside `attach`.
    const isQuiet = this.#held?.length === 0 && !this.#peerEnded &&
      !this.#isClosed;
    if (isQuiet) this.#held = undefined;
    else queueMicrotask(() => this.open());
  }

  write(chunk: Uint8Array): number {
    if (this.isEnded) {
      throw new TypeError("Cannot write to a conduit: end() was called before");
    }
    if (this.#isClosed) return 0;
    if (this.#linger !== undefined) {
      return this.#drop(chunk.length, this.#linger);
    }
    if (this.#gatherer !== undefined) {
      this.port.sendDatagram(chunk);
      return chunk.length;
    }
    const taken = this.port.send(chunk);
    if (taken < chunk.length && !this.isEnded) this.#outgoing = "short";
    return taken;
  }

  end(isGone = false): void {
    if (this.#isClosed || this.isEnded) return;
    this.#outgoing = isGone ? "leaving" : "ending";
    if (this.#linger !== undefined) {
      this.close(this.#linger.end ?? { kind: "clean" });
    } else this.#sendEnd();
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    if (this.#isClosed) return;
    if (this.#linger === undefined) this.port.sendReset(reason, kind);
    this.close({ kind, reason });
  }

  consumed(bytes: number): void {
    // The rest was credited when the conduit closed.
    if (this.#isClosed) return;
    this.#unconsumedBytes -= bytes;
    if (this.#linger !== undefined) {
      this.#linger.hasMoved = true;
      const { end } = this.#linger;
      // Not from inside a call of the owner.
      if (end !== undefined && this.#unconsumedBytes === 0) {
        queueMicrotask(() => this.close(end));
      }
    }
    if (this.#gatherer === undefined) this.port.credit(bytes);
  }

  // ---- towards the peer (called by the port's owner) ----

  /**
   * A piece of a DATA packet's payload.
   *
   * @param leftBytes How much of the same packet is still to come.
   */
  deliver(piece: Uint8Array, leftBytes: number): void {
    if (this.#isClosed || this.#peerEnded) {
      this.port.credit(piece.length);
      return;
    }
    if (this.#gatherer === undefined) {
      if (piece.length > 0) this.#take(piece);
      return;
    }
    // A datagram does not wait: credit goes back at once, and one that finds
    // the queue full is dropped. (A window may be smaller than one datagram.)
    this.port.credit(piece.length);
    const datagram = this.#gatherer.push(piece, leftBytes);
    if (datagram !== undefined) this.#takeDatagram(datagram);
  }

  /** A datagram of no bytes. */
  deliverEmptyDatagram(): void {
    if (this.#isClosed || this.#peerEnded) return;
    if (this.#gatherer !== undefined) this.#takeDatagram(NO_BYTES);
  }

  /** The peer will send no more data. */
  deliverEnd(): void {
    if (this.#isClosed || this.#peerEnded) return;
    this.#peerEnded = true;
    if (this.#held !== undefined) return;
    this.#events?.onEnd(this.#peerIsGone);
    this.#afterEnds();
  }

  /** There may be room again. */
  writable(): void {
    if (this.#isClosed) return;
    switch (this.#outgoing) {
      case "short":
        this.#outgoing = "open";
        this.#events?.onWritable();
        return;
      case "ending":
      case "leaving":
        this.#sendEnd();
    }
  }

  /**
   * The peer has closed both directions in order, so nothing more can reach
   * it. The conduit stays until its owner ends it too; what the owner writes
   * meanwhile has nowhere to go.
   *
   * @param dropBytesMax How much of that is dropped in silence before the owner
   *   gets a reset.
   */
  peerGone(dropBytesMax: number): void {
    if (this.#isClosed || this.#linger !== undefined) return;
    const linger: Linger = { leftBytes: dropBytesMax, hasMoved: false };
    this.#linger = linger;
    this.deliverEnd();
    if (this.#isClosed) return;
    if (this.isEnded) return this.close({ kind: "clean" });
    this.#lingerFurther(linger);
    this.writable();
  }

  /**
   * The peer has given up both directions after its last bytes: those are
   * passed on first. Later writes of the owner are dropped.
   */
  closeBehind(end: ConduitEnd): void {
    if (this.#isClosed || this.#linger !== undefined) return;
    if (this.#unconsumedBytes === 0) return this.close(end);
    this.#linger = { leftBytes: GONE_LINGER_BYTES_MAX, hasMoved: false, end };
    this.#lingerFurther(this.#linger);
    this.writable();
  }

  /** It is over; reports that to the owner and frees everything. */
  close(end: ConduitEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#linger?.timer?.cancel();
    const owed = this.#gatherer === undefined ? this.#unconsumedBytes : 0;
    this.#unconsumedBytes = 0;
    if (owed > 0) this.port.credit(owed);
    this.port.release();
    if (this.#held === undefined) this.#events?.onClose(end);
    else this.#heldClose = end;
  }

  // ---- before there is a reader ----

  /** Delivers held bytes, once both ends are attached. */
  open(): void {
    const held = this.#held ?? [];
    const end = this.#heldClose;
    const isClean = end === undefined || end.kind === "clean";
    this.#held = undefined;
    for (const chunk of isClean ? held : []) {
      if (this.#isClosed && end === undefined) return;
      this.#events?.onData(chunk);
    }
    if (this.#isClosed && end === undefined) return;
    if (this.#peerEnded && isClean) this.#events?.onEnd(this.#peerIsGone);
    if (end !== undefined) this.#events?.onClose(end);
    else this.#afterEnds();
  }

  /**
   * Takes over the first bytes that are held; they count as passed on.
   *
   * @returns At most `bytesMax`; for datagrams exactly one, or nothing.
   */
  takeHeld(bytesMax: number): Uint8Array {
    const held = this.#held ?? [];
    let bytes = held.reduce((sum, chunk) => sum + chunk.length, 0);
    if (this.#gatherer !== undefined) {
      if (held.length !== 1 || bytes > bytesMax) bytes = 0;
    } else bytes = Math.min(bytes, bytesMax);
    if (bytes === 0) return NO_BYTES;
    const taken = new Uint8Array(bytes);
    for (let at = 0; at < bytes;) {
      const first = held.shift()!;
      const part = first.subarray(0, bytes - at);
      taken.set(part, at);
      at += part.length;
      if (part.length < first.length) held.unshift(first.subarray(part.length));
    }
    this.consumed(bytes);
    return taken;
  }

  get #peerIsGone(): boolean {
    return this.#linger !== undefined;
  }

  #takeDatagram(datagram: Uint8Array): void {
    const queued = this.#unconsumedBytes + datagram.length;
    if (queued > DATAGRAM_QUEUE_BYTES_MAX) this.#gatherer!.drop();
    else this.#take(datagram);
  }

  #take(chunk: Uint8Array): void {
    this.#unconsumedBytes += chunk.length;
    if (this.#held !== undefined) this.#held.push(chunk.slice());
    else this.#events?.onData(chunk);
  }

  #sendEnd(): void {
    const isGone = this.#outgoing === "leaving";
    if (!this.port.sendEnd(isGone) || this.#isClosed) return;
    this.#outgoing = "ended";
    this.#afterEnds();
  }

  #afterEnds(): void {
    if (this.#isClosed || this.#held !== undefined) return;
    if (this.#peerEnded && this.#outgoing === "ended") this.port.bothEnded();
  }

  #drop(bytes: number, linger: Linger): number {
    linger.leftBytes -= bytes;
    if (linger.leftBytes < 0) {
      this.close({
        kind: "reset",
        reason: "Cannot deliver data: the other end has closed the connection",
      });
    }
    return bytes;
  }

  #lingerFurther(linger: Linger): void {
    linger.hasMoved = false;
    linger.timer = this.#timers.after(GONE_LINGER_MS, () => {
      if (linger.hasMoved) return this.#lingerFurther(linger);
      this.close(
        linger.end ?? {
          kind: "reset",
          reason: "Cannot keep the connection: the other end closed it " +
            `${GONE_LINGER_MS / 1000} s ago and nothing moved since`,
        },
      );
    });
  }
}

/**
 * A conduit whose other end is packets: the state machine that both carriers
 * and every dialect share.
 *
 * What differs (how a half-close is said, what a reset looks like, where credit
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
} from "../transfer/conduit.ts";
import { DatagramGatherer } from "./datagram_gatherer.ts";
import type { PacketObserver } from "./packet_observer.ts";

/**
 * How long a conduit is kept for its own end after the peer has closed both
 * directions, counted from the last byte that moved. Long enough to hand what
 * came before to a slow reader, short enough not to collect the forgotten.
 */
export const LINGER_MS = 10_000;

/**
 * Bytes for a caller that has gone which are thrown away before the target is
 * told by a reset. A request's last words fit; a running download ends soon.
 */
export const LINGER_BYTES_MAX = 1024 * 1024;

/** Bytes of datagrams that may wait for a slow reader; then they are dropped. */
export const DATAGRAM_QUEUE_BYTES_MAX = 256 * 1024;

const NO_BYTES = new Uint8Array(0);

/** How a conduit reaches its peer; one implementation per dialect. */
export interface ConduitPort {
  /**
   * Sends the first part of `chunk` that fits, perhaps nothing.
   *
   * @returns Bytes taken. After less than all, the port calls `writable`.
   */
  send(chunk: Uint8Array): number;
  /** Sends `datagram` whole, or drops it. */
  sendDatagram(datagram: Uint8Array): void;
  /**
   * Tells the peer that no more data will come.
   *
   * @param isGone See `Conduit.end`.
   * @returns `false` when there is no room now; the port calls `writable`.
   */
  sendEnd(isGone: boolean): boolean;
  /** Tells the peer that both directions are given up. */
  sendReset(reason: string, kind: "reset" | "lost"): void;
  /** Both directions have ended; call `close` now, or when the peer agrees. */
  bothEnded(): void;
  /** Received bytes were passed on, or dropped. */
  credit(bytes: number): void;
  /** The conduit is over: forget it. Nothing is called after this. */
  release(): void;
}

/** See the module description. */
export class PacketConduit implements Conduit {
  readonly #port: ConduitPort;
  readonly #timers: Timers;
  readonly #gatherer: DatagramGatherer | undefined;
  #events: ConduitEvents | undefined;
  #isClosed = false;
  /** Ours: `wanted` from `end()` until the port had room to say it. */
  #ended: "no" | "wanted" | "sent" = "no";
  #ownerIsGone = false;
  #peerEnded = false;
  #isShort = false;
  #unconsumedBytes = 0;
  /** What came while nobody could hear it; unset once the conduit is open. */
  #held: Uint8Array[] | undefined = [];
  readonly #opensByItself: boolean;
  #heldClose: ConduitEnd | undefined;
  #linger: Timer | undefined;
  /** Bytes that may still be dropped; defined once the peer has gone. */
  #lingerBytes: number | undefined;
  #hasMoved = false;

  /**
   * @param options.datagrams Whether one DATA packet is one datagram.
   * @param options.hold Keeps what arrives until `open` is called: the conduit
   *   exists before there is anybody to read it (early data). Otherwise it opens
   *   when somebody attaches; what came before that is told right after.
   * @param options.cutsDatagrams Whether the peer is an agent that does.
   */
  constructor(
    port: ConduitPort,
    options: {
      readonly datagrams: boolean;
      readonly timers: Timers;
      readonly observer: PacketObserver;
      readonly hold?: boolean;
      readonly cutsDatagrams?: boolean;
    },
  ) {
    this.#port = port;
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

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether `end` was called. */
  get isEnded(): boolean {
    return this.#ended !== "no";
  }

  /** Whether the peer has said that it will send no more. */
  get peerEnded(): boolean {
    return this.#peerEnded;
  }

  // ---- towards the owner (Conduit) ----

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit: somebody did before");
    }
    this.#events = events;
    if (!this.#opensByItself) return;
    // Nobody expects events from inside `attach`.
    const isQuiet = this.#held?.length === 0 && !this.#peerEnded &&
      !this.#isClosed;
    if (isQuiet) this.#held = undefined;
    else queueMicrotask(() => this.open());
  }

  write(chunk: Uint8Array): number {
    if (this.#ended !== "no") {
      throw new TypeError("Cannot write to a conduit: end() was called before");
    }
    if (this.#isClosed) return 0;
    if (this.#lingerBytes !== undefined) return this.#drop(chunk.length);
    if (this.#gatherer !== undefined) {
      this.#port.sendDatagram(chunk);
      return chunk.length;
    }
    const taken = this.#port.send(chunk);
    if (taken < chunk.length) this.#isShort = true;
    return taken;
  }

  end(isGone = false): void {
    if (this.#isClosed || this.#ended !== "no") return;
    this.#ended = "wanted";
    this.#ownerIsGone = isGone;
    if (this.#lingerBytes !== undefined) this.close({ kind: "clean" });
    else this.#sendEnd();
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    if (this.#isClosed) return;
    if (this.#lingerBytes === undefined) this.#port.sendReset(reason, kind);
    this.close({ kind, reason });
  }

  consumed(bytes: number): void {
    // What was left when the conduit closed was credited then.
    if (this.#isClosed) return;
    this.#unconsumedBytes -= bytes;
    this.#hasMoved = true;
    if (this.#gatherer === undefined) this.#port.credit(bytes);
  }

  // ---- towards the peer (called by the port's owner) ----

  /**
   * A piece of a DATA packet's payload.
   *
   * @param leftBytes How much of the same packet is still to come.
   */
  deliver(piece: Uint8Array, leftBytes: number): void {
    if (this.#isClosed || this.#peerEnded) {
      this.#port.credit(piece.length);
      return;
    }
    if (this.#gatherer === undefined) {
      if (piece.length > 0) this.#take(piece);
      return;
    }
    // Nobody waits for a datagram: credit goes back at once, and what finds the
    // queue full is dropped. (A window may be smaller than one datagram.)
    this.#port.credit(piece.length);
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
    if (this.#ended === "wanted") return this.#sendEnd();
    if (!this.#isShort) return;
    this.#isShort = false;
    this.#events?.onWritable();
  }

  /**
   * The peer has closed both directions in order, so nothing more can reach
   * it. The conduit stays until its owner ends it too; what the owner writes
   * meanwhile has nowhere to go.
   *
   * @param dropBytesMax How much of that is dropped in silence before the
   *   owner is told by a reset.
   */
  peerGone(dropBytesMax: number): void {
    if (this.#isClosed || this.#lingerBytes !== undefined) return;
    this.#lingerBytes = dropBytesMax;
    this.deliverEnd();
    if (this.#isClosed) return;
    if (this.#ended !== "no") return this.close({ kind: "clean" });
    this.#lingerFurther();
    this.writable();
  }

  /** It is over; says so upwards and lets go of everything. */
  close(end: ConduitEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#linger?.cancel();
    const owed = this.#gatherer === undefined ? this.#unconsumedBytes : 0;
    this.#unconsumedBytes = 0;
    if (owed > 0) this.#port.credit(owed);
    this.#port.release();
    if (this.#held === undefined) this.#events?.onClose(end);
    else this.#heldClose = end;
  }

  // ---- before anybody reads ----

  /** Tells what was held, once both ends are attached. */
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
    const taken = new Uint8Array(bytes);
    for (let at = 0; at < bytes;) {
      const first = held.shift()!;
      const part = first.subarray(0, bytes - at);
      taken.set(part, at);
      at += part.length;
      if (part.length < first.length) held.unshift(first.subarray(part.length));
    }
    if (bytes > 0) this.consumed(bytes);
    return taken;
  }

  get #peerIsGone(): boolean {
    return this.#lingerBytes !== undefined;
  }

  #takeDatagram(datagram: Uint8Array): void {
    const queued = this.#unconsumedBytes + datagram.length;
    if (queued > DATAGRAM_QUEUE_BYTES_MAX) this.#gatherer!.drop();
    else this.#take(datagram);
  }

  #take(chunk: Uint8Array): void {
    this.#unconsumedBytes += chunk.length;
    this.#hasMoved = true;
    if (this.#held !== undefined) this.#held.push(chunk.slice());
    else this.#events?.onData(chunk);
  }

  #sendEnd(): void {
    if (!this.#port.sendEnd(this.#ownerIsGone) || this.#isClosed) return;
    this.#ended = "sent";
    this.#afterEnds();
  }

  #afterEnds(): void {
    if (this.#isClosed || this.#held !== undefined) return;
    if (this.#peerEnded && this.#ended === "sent") this.#port.bothEnded();
  }

  #drop(bytes: number): number {
    this.#lingerBytes! -= bytes;
    if (this.#lingerBytes! < 0) {
      this.close({
        kind: "reset",
        reason: "Cannot deliver data: the other end has closed the connection",
      });
    }
    return bytes;
  }

  #lingerFurther(): void {
    this.#hasMoved = false;
    this.#linger = this.#timers.after(LINGER_MS, () => {
      if (this.#hasMoved) return this.#lingerFurther();
      this.close({
        kind: "reset",
        reason: "Cannot keep the connection: the other end closed it " +
          `${LINGER_MS / 1000} s ago and nothing moved since`,
      });
    });
  }
}

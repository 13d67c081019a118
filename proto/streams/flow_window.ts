/**
 * Flow-control windows (RFC 9113 §5.2 and §6.9), one type per direction, so
 * that no arithmetic on a window is ever written anywhere else.
 *
 * What decides how large they are, and where it is said:
 *
 * ```
 *   the process     receive_budget     what may wait unread in all connections
 *        │
 *   a connection    receiving_side     its window: what the path carries in a
 *        │             ▲               round trip, and little more
 *        │             │ round trips   (liveness, PathRtt)
 *        │             ▼
 *   a stream        settings_exchange  where it starts: less, the more there are
 *                   window_tuner       how far it grows by being read
 *        │
 *   this file       ReceiveWindow      credit given, used and due again
 *                   SendWindow         credit that the peer gave us
 * ```
 *
 * @module
 */

import { UINT31_MAX } from "../frames/frame.ts";

/** Every window before any SETTINGS or WINDOW_UPDATE (§6.9.2). */
export const WINDOW_BYTES_DEFAULT = 65_535;

/**
 * Credit is announced at the latest when so much is due, however large the
 * window: a sender on a long path should not wait for half of it to pass, and
 * each announcement also shows that the stream moves (`bulk_sense.ts`).
 */
export const UPDATE_BYTES_MAX: number = 256 * 1024;

/** What the peer lets us send, on one stream or on the connection. */
export class SendWindow {
  #available: number;

  constructor(bytes: number) {
    this.#available = bytes;
  }

  /** Bytes that may be sent now; negative after the peer shrank it (§6.9.2). */
  get available(): number {
    return this.#available;
  }

  /** Spends `bytes`, of which there must be enough: anything else is our bug. */
  spend(bytes: number): void {
    if (bytes > this.#available && bytes > 0) {
      throw new RangeError(
        `Cannot send ${bytes} bytes: the window has ${this.#available}`,
      );
    }
    this.#available -= bytes;
  }

  /**
   * Applies a WINDOW_UPDATE, or a change of INITIAL_WINDOW_SIZE that may be
   * negative.
   *
   * @returns `false` if the window would pass 2^31-1: the peer's error (§6.9.1).
   */
  adjust(bytes: number): boolean {
    if (this.#available + bytes > UINT31_MAX) return false;
    this.#available += bytes;
    return true;
  }
}

/**
 * What we let the peer send. Each byte is in one of three places: still
 * grantable to the peer (`available`), received but not used up
 * (`outstanding`), or used up but not announced again; their sum is `size`.
 */
export class ReceiveWindow {
  #start: number;
  #size: number;
  #available: number;
  #outstanding = 0;

  constructor(bytes: number) {
    this.#start = bytes;
    this.#size = bytes;
    this.#available = bytes;
  }

  /** What the peer may have in flight and unconsumed together. */
  get size(): number {
    return this.#size;
  }

  /** How far it has grown beyond its initial size. */
  get grownBytes(): number {
    return this.#size - this.#start;
  }

  /**
   * Bytes that the peer may still send by what we have announced; negative
   * after our INITIAL_WINDOW_SIZE became smaller (§6.9.2).
   */
  get available(): number {
    return this.#available;
  }

  /** Bytes received and not yet released. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Charges received bytes; `false` if the peer had no right to send them. */
  receive(bytes: number): boolean {
    if (bytes > this.#available) return false;
    this.#available -= bytes;
    this.#outstanding += bytes;
    return true;
  }

  /** Bytes were used up: they can be granted again. */
  release(bytes: number): void {
    if (bytes < 0 || bytes > this.#outstanding) {
      throw new RangeError(
        `Cannot release ${bytes} bytes: ${this.#outstanding} are outstanding`,
      );
    }
    this.#outstanding -= bytes;
  }

  /**
   * Moves the start, and with it everything granted, as a change of our
   * INITIAL_WINDOW_SIZE does (§6.9.2). Nothing is announced for it.
   */
  shift(bytes: number): void {
    this.#start += bytes;
    this.#size += bytes;
    this.#available += bytes;
  }

  /** Raises the window ahead of consumption. Never shrinks it. */
  grow(size: number): void {
    this.resize(Math.max(this.#size, size));
  }

  /**
   * Like {@linkcode grow}, but also down. Granted credit stays granted:
   * announcements stop until the surplus has been received.
   */
  resize(size: number): void {
    this.#size = Math.min(size, UINT31_MAX);
  }

  /**
   * The increment to announce now, or 0 while it is less than half of the
   * window and than {@linkcode UPDATE_BYTES_MAX}: that many updates are enough
   * to keep the peer sending, and few. What is returned counts as announced.
   */
  takeUpdate(): number {
    const due = this.#size - this.#available - this.#outstanding;
    const isDue = due * 2 >= this.#size || due >= UPDATE_BYTES_MAX;
    return isDue ? this.takeAll() : 0;
  }

  /** Like {@linkcode takeUpdate}, for any amount. */
  takeAll(): number {
    const due = this.#size - this.#available - this.#outstanding;
    if (due <= 0) return 0; // The window became smaller.
    this.#available += due;
    return due;
  }
}

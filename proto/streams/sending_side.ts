/**
 * What all streams of a connection share when they send: the output, the
 * connection's window, and the turns in which they use them.
 *
 * @module
 */

import { Output } from "../bytes/output.ts";
import type { AbuseGuard } from "./abuse_limits.ts";
import { SendWindow, WINDOW_BYTES_DEFAULT } from "./flow_window.ts";
import { FrameWriter } from "./frame_writer.ts";

/** DATA waits with its senders when so much is in the output already. */
export const OUTPUT_HIGH_WATER_BYTES: number = 256 * 1024;

export class SendingSide {
  readonly writer: FrameWriter;
  readonly scheduler: WriteScheduler;
  readonly window: SendWindow = new SendWindow(WINDOW_BYTES_DEFAULT);
  readonly #output = new Output();
  #listener: (() => void) | undefined;
  /** The driver knows that there is output. */
  #isAnnounced = false;
  #isAbandoned = false;

  constructor(private readonly guard: AbuseGuard) {
    this.writer = new FrameWriter(this.#output, () => this.announce());
    this.scheduler = new WriteScheduler(() => this.room > 0);
  }

  /** Bytes that one DATA frame of any stream may have now. */
  get room(): number {
    if (this.#output.queuedBytes >= OUTPUT_HIGH_WATER_BYTES) return 0;
    const window = this.window.available;
    return Math.max(0, Math.min(window, this.writer.frameSizeMax));
  }

  /** Bytes that wait to be written and cannot be held back. */
  get controlBytes(): number {
    return this.#output.controlBytes;
  }

  /** Nothing waits to be written, or it will never be written. */
  get isEmpty(): boolean {
    return this.#isAbandoned || this.#output.queuedBytes === 0;
  }

  /** A DATA frame of `sender`'s goes out. */
  sent(sender: WaitingSender, bytes: number): void {
    this.window.spend(bytes);
    this.scheduler.sent(sender, bytes);
    // The peer opens its windows and measures the path by what we send.
    this.guard.refund("tinyUpdates");
    this.guard.refund("pings");
  }

  /** `sender` could send by its own window and needs a turn. */
  awaitRoom(sender: WaitingSender): void {
    this.scheduler.wait(sender);
    // Nothing else would give it a turn: turns are given in `take`.
    if (this.room > 0) this.announce();
  }

  /** See `Connection.setOutputListener`. */
  setListener(listener: () => void): void {
    this.#listener = listener;
    if (this.#isAnnounced) listener();
  }

  /** Notifies the driver, unless it is notified already and has yet to look. */
  announce(): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#listener?.();
  }

  /** See `Connection.takeOutput`. */
  take(): Uint8Array | undefined {
    this.scheduler.run();
    const batch = this.#output.take();
    if (batch === undefined && !this.#output.isInFlight) {
      this.#isAnnounced = false;
    }
    return batch;
  }

  /** See `Connection.outputWritten`. */
  written(): void {
    this.#output.written();
    this.scheduler.run();
  }

  /** Drops all output, and does not wait for the batch in flight. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#output.discard();
  }
}

// Which stream may send next: the streams that wait for what they share (the
// connection's window and its output) take turns of one frame.
//
// Two rings. Streams that send little (an interactive session, a request) go
// before those in bulk, so that they never wait for more than what is already
// in the output; but after a frame's worth of such turns bulk gets one. It
// knows of windows and frames only what {@linkcode WaitingSender} has.

/** A stream as the scheduler sees it. */
export interface WaitingSender {
  /** It may send by its own window. */
  readonly hasWindow: boolean;
  /** Its recent frames were small. */
  readonly isSparse: boolean;
  /** It may send one frame now. It waits again by itself if it has more. */
  takeTurn(): void;
}

/** Bytes that sparse streams may send between two turns of bulk ones. */
const SPARSE_BYTES_PER_BULK_TURN = 16 * 1024;

/** The cost of a turn besides its bytes, so that tiny frames are not free. */
const TURN_BYTES = 64;

/** Nothing is ever put into it. */
const NOBODY: Set<WaitingSender> = new Set();

export class WriteScheduler {
  // Made when a stream waits: on most connections none ever does.
  #sparse = NOBODY;
  #bulk = NOBODY;
  #turn: WaitingSender | undefined;
  #turnBytes = 0;
  #sparseBytes = 0;

  /** @param hasRoom Whether anything at all can be sent now. */
  constructor(private readonly hasRoom: () => boolean) {}

  /** How many wait. */
  get waiting(): number {
    return this.#sparse.size + this.#bulk.size;
  }

  /** Puts `sender` at the end of its ring, unless it waits already. */
  wait(sender: WaitingSender): void {
    if (this.#sparse.has(sender) || this.#bulk.has(sender)) return;
    if (this.#sparse === NOBODY) {
      this.#sparse = new Set();
      this.#bulk = new Set();
    }
    (sender.isSparse ? this.#sparse : this.#bulk).add(sender);
  }

  /** Forgets `sender`, wherever it waits. */
  remove(sender: WaitingSender): void {
    this.#sparse.delete(sender);
    this.#bulk.delete(sender);
  }

  /** `sender` has sent a frame, in its turn or not. */
  sent(sender: WaitingSender, bytes: number): void {
    if (sender === this.#turn) this.#turnBytes += bytes;
  }

  /** True while it is `sender`'s turn, its frame is sent and others wait. */
  isTurnOver(sender: WaitingSender): boolean {
    return sender === this.#turn && this.#turnBytes > 0 && this.waiting > 0;
  }

  /** Gives turns for as long as there is room. Harmless inside a turn. */
  run(): void {
    if (this.#turn !== undefined) return;
    // Each waiting stream has a turn at least, and another only if one made
    // progress: one that waits without sending must not make us spin.
    let patience = this.waiting;
    while (patience > 0 && this.hasRoom()) {
      const sender = this.#next();
      if (sender === undefined) return;
      patience = this.#giveTurn(sender) ? this.waiting : patience - 1;
    }
  }

  #giveTurn(sender: WaitingSender): boolean {
    // A stalled one drops out; its own WINDOW_UPDATE will bring it back.
    if (!sender.hasWindow) return false;
    const isSparse = sender.isSparse;
    this.#turn = sender;
    this.#turnBytes = 0;
    try {
      sender.takeTurn();
    } finally {
      this.#turn = undefined;
    }
    this.#sparseBytes = isSparse
      ? this.#sparseBytes + this.#turnBytes + TURN_BYTES
      : 0;
    return this.#turnBytes > 0;
  }

  #next(): WaitingSender | undefined {
    const preferBulk = this.#sparseBytes >= SPARSE_BYTES_PER_BULK_TURN &&
      this.#bulk.size > 0;
    const ring = preferBulk || this.#sparse.size === 0
      ? this.#bulk
      : this.#sparse;
    const sender = ring.values().next().value;
    if (sender !== undefined) ring.delete(sender);
    return sender;
  }
}

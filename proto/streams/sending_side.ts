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
import { type WaitingSender, WriteScheduler } from "./write_scheduler.ts";

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

  /** Drops all output; what is in flight is not waited for. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#output.discard();
  }
}

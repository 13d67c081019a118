/**
 * Conduits without a network: two ends in memory, with a window, that a test
 * can stall, cut, reset and lose.
 *
 * What one end writes reaches the other in a microtask, never inside the call,
 * as with a real socket. The window counts what was written and not consumed
 * yet, so a test sees backpressure to the byte.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../../proto/transfer/conduit.ts";

/** Options of {@linkcode MemoryConduit.pair}. */
export interface MemoryPairOptions {
  /** What each end may have written ahead of what the other consumed. */
  readonly windowBytes?: number;
  /** Whole datagrams; those that exceed the window are dropped. */
  readonly datagrams?: boolean;
  /** Size of the next piece delivered, for random cutting. All by default. */
  readonly cut?: (bytes: number) => number;
  /** Has a step of one end done, later. In a microtask by default. */
  readonly schedule?: (step: () => void) => void;
}

/** See the module description. */
export class MemoryConduit implements Conduit {
  readonly datagrams: boolean;
  readonly #windowBytes: number;
  readonly #cut: (bytes: number) => number;
  readonly #later: (step: () => void) => void;
  #peer!: MemoryConduit;
  #events: ConduitEvents | undefined;
  /** Written and not delivered yet. */
  #line: Uint8Array[] = [];
  /** Delivered to our owner and not consumed yet. */
  #delivered = 0;
  /** Written by us and not consumed by the other end's owner yet. */
  #ahead = 0;
  #isShort = false;
  #isStalled = false;
  #isScheduled = false;
  #end: "open" | "ended" | "told" = "open";
  #closed: ConduitEnd | undefined;
  /** Datagrams that were written over the window. */
  dropped = 0;

  private constructor(options: MemoryPairOptions) {
    this.datagrams = options.datagrams ?? false;
    this.#windowBytes = options.windowBytes ?? 65_536;
    this.#cut = options.cut ?? ((bytes) => bytes);
    this.#later = options.schedule ?? queueMicrotask;
  }

  /** Two ends of one connection. */
  static pair(options: MemoryPairOptions = {}): [MemoryConduit, MemoryConduit] {
    const [one, other] = [
      new MemoryConduit(options),
      new MemoryConduit(options),
    ];
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  /** Bytes that our owner has been given and has not consumed. */
  get unconsumedBytes(): number {
    return this.#delivered;
  }

  /** How this end ended, once it has. */
  get closed(): ConduitEnd | undefined {
    return this.#closed;
  }

  /** Keeps what this end sends on the line, ends included, until `resume`. */
  stall(): void {
    this.#isStalled = true;
  }

  resume(): void {
    this.#isStalled = false;
    this.#schedule();
  }

  /** The line breaks: both owners hear `lost`. */
  lose(reason: string): void {
    this.#close({ kind: "lost", reason });
    this.#peer.#close({ kind: "lost", reason });
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    this.#peer.#schedule();
    this.#schedule();
  }

  write(chunk: Uint8Array): number {
    if (this.#end !== "open") throw new TypeError("Cannot write after end");
    if (this.#closed !== undefined) return 0;
    const room = this.#windowBytes - this.#ahead;
    if (this.datagrams && chunk.length > room) {
      this.dropped++;
      return chunk.length;
    }
    const taken = Math.min(room, chunk.length);
    if (taken > 0 || this.datagrams) this.#line.push(chunk.slice(0, taken));
    this.#ahead += taken;
    if (taken < chunk.length) this.#isShort = true;
    this.#schedule();
    return taken;
  }

  end(): void {
    if (this.#end !== "open") throw new TypeError("Cannot end twice");
    this.#end = "ended";
    this.#schedule();
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    this.#close({ kind: "reset", reason });
    this.#peer.#close({ kind, reason });
  }

  consumed(bytes: number): void {
    if (!(bytes >= 0 && bytes <= this.#delivered)) {
      throw new RangeError(
        `Cannot consume ${bytes} bytes: ${this.#delivered} were delivered`,
      );
    }
    this.#delivered -= bytes;
    this.#peer.#ahead -= bytes;
    this.#peer.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#later(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    if (this.#events === undefined || this.#closed !== undefined) return;
    this.#deliver();
    if (this.#isShort && this.#ahead < this.#windowBytes) {
      this.#isShort = false;
      this.#events.onWritable();
    }
    if (this.#end === "told" && this.#peer.#end === "told") {
      this.#close({ kind: "clean" });
      this.#peer.#close({ kind: "clean" });
    }
  }

  #deliver(): void {
    const peer = this.#peer;
    while (!this.#isStalled && peer.#events && peer.#closed === undefined) {
      const piece = this.#nextPiece();
      if (piece === undefined) {
        if (this.#end !== "ended") return;
        this.#end = "told";
        return peer.#events.onEnd();
      }
      peer.#delivered += piece.length;
      peer.#events.onData(piece);
      piece.fill(0xee); // the view is valid only during the call
    }
  }

  #nextPiece(): Uint8Array | undefined {
    const first = this.#line.shift();
    if (first === undefined || this.datagrams) return first;
    const count = Math.min(first.length, Math.max(1, this.#cut(first.length)));
    if (count < first.length) this.#line.unshift(first.subarray(count));
    return first.subarray(0, count);
  }

  #close(end: ConduitEnd): void {
    if (this.#closed !== undefined) return;
    this.#closed = end;
    this.#line = [];
    this.#events?.onClose(end);
  }
}

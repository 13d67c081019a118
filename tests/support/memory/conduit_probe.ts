/**
 * The owner of a conduit, as tests want it: it writes what it is told, keeps
 * what it receives and can wait for it. A test that awaits what it does goes on
 * when all that follows from it has come to rest.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../../proto/transfer/conduit.ts";

/** See the module description. */
export class ConduitProbe implements ConduitEvents {
  readonly #closed = Promise.withResolvers<ConduitEnd>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #waits: { readonly bytes: number; readonly resolve: () => void }[] =
    [];
  #received: Uint8Array[] = [];
  #receivedBytes = 0;
  #unconsumed = 0;
  #isReading = true;
  #queue: Uint8Array[] = [];
  #endsAfterQueue = false;
  /** The other end has half-closed. */
  hasEnded = false;
  /** How it ended. */
  end: ConduitEnd | undefined;

  /** Attaches to `conduit` at once. */
  constructor(private readonly conduit: Conduit) {
    conduit.attach(this);
  }

  /** Fulfilled with how the conduit ended. */
  get closed(): Promise<ConduitEnd> {
    return this.#closed.promise;
  }

  /** Fulfilled when the other end has half-closed. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Written with `send` and not yet taken by the conduit. */
  get queuedBytes(): number {
    return this.#queue.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  /** Every chunk as it came: the datagrams, for a datagram conduit. */
  get chunks(): readonly Uint8Array[] {
    return this.#received;
  }

  /** Everything received so far, as one run. */
  get bytes(): Uint8Array {
    const joined = new Uint8Array(this.#receivedBytes);
    let at = 0;
    for (const chunk of this.#received) {
      joined.set(chunk, at);
      at += chunk.length;
    }
    return joined;
  }

  /** Everything received so far, as text. */
  get text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** Writes all of `bytes`, in order, as the conduit takes them. */
  send(bytes: Uint8Array | string): PromiseLike<void> {
    const chunk = typeof bytes === "string"
      ? new TextEncoder().encode(bytes)
      : bytes;
    this.#queue.push(chunk);
    if (this.#queue.length === 1) this.onWritable();
    return REST;
  }

  /** Half-closes behind everything sent; `isGone` as in `Conduit.end`. */
  finish(isGone = false): PromiseLike<void> {
    if (this.#queue.length === 0) this.conduit.end(isGone);
    else this.#endsAfterQueue = true;
    return REST;
  }

  reset(reason: string, kind?: "reset" | "lost"): PromiseLike<void> {
    this.conduit.reset(reason, kind);
    return REST;
  }

  /** Stops consuming: what arrives is kept, and no credit returned. */
  stopReading(): void {
    this.#isReading = false;
  }

  /** Consumes what has piled up and goes on. */
  startReading(): PromiseLike<void> {
    this.#isReading = true;
    const bytes = this.#unconsumed;
    this.#unconsumed = 0;
    if (bytes > 0) this.conduit.consumed(bytes);
    return REST;
  }

  /** Fulfilled when `bytes` have arrived in all. */
  received(bytes: number): Promise<void> {
    if (this.#receivedBytes >= bytes) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.push({ bytes, resolve });
    return promise;
  }

  /**
   * The same, where the conduit is to stay: its end fails the test at once.
   *
   * @throws {Error} With how it ended.
   */
  async mustReceive(bytes: number): Promise<void> {
    const isWhole = await Promise.race([
      this.received(bytes).then(() => true),
      this.closed.then(() => this.#receivedBytes >= bytes),
    ]);
    if (!isWhole) throw new Error(`it ended: ${JSON.stringify(this.end)}`);
  }

  onData(chunk: Uint8Array): void {
    this.#received.push(chunk.slice());
    this.#receivedBytes += chunk.length;
    if (this.#isReading) this.conduit.consumed(chunk.length);
    else this.#unconsumed += chunk.length;
    for (const wait of this.#waits) {
      if (wait.bytes <= this.#receivedBytes) wait.resolve();
    }
  }

  onWritable(): void {
    while (this.#queue.length > 0) {
      const chunk = this.#queue[0]!;
      const taken = this.conduit.write(chunk);
      if (taken < chunk.length) {
        this.#queue[0] = chunk.subarray(taken);
        return;
      }
      this.#queue.shift();
    }
    if (this.#endsAfterQueue) {
      this.#endsAfterQueue = false;
      this.conduit.end();
    }
  }

  onEnd(): void {
    this.hasEnded = true;
    this.#ended.resolve();
  }

  onClose(end: ConduitEnd): void {
    if (this.end !== undefined) throw new TypeError("Cannot close twice");
    this.end = end;
    this.#queue = [];
    this.#closed.resolve(end);
  }
}

/** Fulfilled when everything that was started in memory has come to rest. */
export function settled(): Promise<void> {
  // Memory conduits run on microtasks, all of which come before the next task.
  return new Promise((resolve) => setImmediate(resolve));
}

/** The same for who awaits it: what a test does gives it back. */
export const REST: PromiseLike<void> = {
  then: (onRest, onError) => settled().then(onRest, onError),
};

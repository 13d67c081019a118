/**
 * A conduit as a connection in the manner of `Deno.Conn`: promises to read and
 * write with, and web streams for whoever prefers those.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../proto/transfer/conduit.ts";
import { OctetQueue } from "../proto/transfer/octet_queue.ts";

/** The other end gave the connection up (TCP RST and its like). */
export class TunnelResetError extends Error {
  override readonly name = "TunnelResetError";
}

/** The road broke; what the other end saw is unknown. */
export class TunnelLostError extends Error {
  override readonly name = "TunnelLostError";
}

/** Size of the chunks that {@linkcode TunnelConn.readable} gives. */
const CHUNK_OCTETS = 65_536;

/** One waiting call, and what it waits with. */
interface Waiting<T> {
  readonly octets: Uint8Array;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** See the module description. One `read` and one `write` at a time. */
export class TunnelConn implements ConduitEvents {
  readonly #conduit: Conduit;
  readonly #arrived = new OctetQueue();
  #reader: Waiting<number | null> | undefined;
  #writer: Waiting<void> | undefined;
  #written = 0;
  #peerEnded = false;
  #end: ConduitEnd | undefined;
  readonly #closed = Promise.withResolvers<ConduitEnd>();

  /** @param conduit A connected conduit that nobody has attached to. */
  constructor(conduit: Conduit) {
    this.#conduit = conduit;
    conduit.attach(this);
  }

  /** Settles when both directions are over; says how. Never rejects. */
  get closed(): Promise<ConduitEnd> {
    return this.#closed.promise;
  }

  /**
   * Waits for octets and puts them into `into`.
   *
   * @returns How many, or `null` when the other end has ended its side.
   * @throws {TunnelResetError} When the other end gave up.
   * @throws {TunnelLostError} When the road broke.
   */
  read(into: Uint8Array): Promise<number | null> {
    if (into.length === 0) return Promise.resolve(0);
    if (this.#arrived.octets > 0) return Promise.resolve(this.#take(into));
    const error = this.#error();
    if (error !== undefined) return Promise.reject(error);
    if (this.#peerEnded || this.#end !== undefined) {
      return Promise.resolve(null);
    }
    if (this.#reader !== undefined) {
      throw new TypeError("Cannot read: another read is waiting");
    }
    return new Promise((resolve, reject) => {
      this.#reader = { octets: into, resolve, reject };
    });
  }

  /**
   * Writes all of `octets`, which must not change meanwhile.
   *
   * @returns When the tunnel has taken them; not when they have arrived.
   * @throws As `read` does, and after `closeWrite`.
   */
  write(octets: Uint8Array): Promise<void> {
    if (this.#writer !== undefined) {
      throw new TypeError("Cannot write: another write is waiting");
    }
    if (this.#end !== undefined) {
      return Promise.reject(this.#error() ?? new TunnelResetError("closed"));
    }
    return new Promise((resolve, reject) => {
      this.#writer = { octets, resolve, reject };
      this.#written = 0;
      this.onWritable();
    });
  }

  /** Half-close: the other end reads its end of stream; reading goes on. */
  closeWrite(): void {
    if (this.#end === undefined) this.#conduit.end();
  }

  /** Gives the connection up; a waiting `read` or `write` is rejected. */
  close(): void {
    if (this.#end === undefined) this.#conduit.reset("closed by its user");
  }

  /** The incoming direction as a stream; errors as `read` throws them. */
  get readable(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      pull: async (controller) => {
        const chunk = new Uint8Array(CHUNK_OCTETS);
        const count = await this.read(chunk);
        if (count === null) controller.close();
        else controller.enqueue(chunk.subarray(0, count));
      },
      cancel: () => this.close(),
    });
  }

  /** The outgoing direction as a stream; closing it is the half-close. */
  get writable(): WritableStream<Uint8Array> {
    return new WritableStream({
      write: (chunk) => this.write(chunk),
      close: () => this.closeWrite(),
      abort: () => this.close(),
    });
  }

  onData(chunk: Uint8Array): void {
    this.#arrived.push(chunk);
    this.#serveReader();
  }

  onWritable(): void {
    const writer = this.#writer;
    if (writer === undefined) return;
    const rest = writer.octets.subarray(this.#written);
    this.#written += this.#conduit.write(rest);
    if (this.#written < writer.octets.length) return;
    this.#writer = undefined;
    writer.resolve();
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.#serveReader();
  }

  onClose(end: ConduitEnd): void {
    this.#end = end;
    this.#closed.resolve(end);
    this.#serveReader();
    const writer = this.#writer;
    this.#writer = undefined;
    writer?.reject(this.#error() ?? new TunnelResetError("closed"));
  }

  #serveReader(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    const error = this.#error();
    if (this.#arrived.octets > 0) {
      this.#reader = undefined;
      reader.resolve(this.#take(reader.octets));
    } else if (error !== undefined) {
      this.#reader = undefined;
      reader.reject(error);
    } else if (this.#peerEnded || this.#end !== undefined) {
      this.#reader = undefined;
      reader.resolve(null);
    }
  }

  #take(into: Uint8Array): number {
    const count = Math.min(into.length, this.#arrived.octets);
    into.set(this.#arrived.peek().subarray(0, count));
    this.#arrived.drop(count);
    if (this.#end === undefined) this.#conduit.consumed(count);
    return count;
  }

  #error(): Error | undefined {
    if (this.#end?.kind === "reset") {
      return new TunnelResetError(this.#end.reason);
    }
    if (this.#end?.kind === "lost") {
      return new TunnelLostError(this.#end.reason);
    }
    return undefined;
  }
}

/**
 * A conduit as a connection in the manner of `Deno.Conn`: promises to read and
 * write with, and web streams for callers that prefer those.
 *
 * @module
 */

import type { Conduit, ConduitEnd } from "../proto/transfer/conduit.ts";
import { PooledQueue } from "../proto/transfer/pooled_queue.ts";
import { errorOf } from "./dial_error.ts";
import { hostOf, portOf } from "../proto/peer/host_port.ts";

/** Size of the chunks that {@linkcode TunnelConn.readable} gives. */
const CHUNK_BYTES = 65_536;

/** One waiting call, and its resolvers. */
interface Waiting<T> {
  readonly bytes: Uint8Array;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** One `read` and one `write` at a time. */
export class TunnelConn implements Disposable, AsyncDisposable {
  /** Unspecified: this end of a tunnel has no address, its route has. */
  readonly localAddr: TunnelAddr;
  readonly #arrived = new PooledQueue();
  #reader: Waiting<number | null> | undefined;
  #writer: Waiting<void> | undefined;
  /** How much of the waiting write the conduit has taken. */
  #taken = 0;
  /** Ours: `wanted` while a write is still under way. */
  #ended: "no" | "wanted" | "sent" = "no";
  #peerEnded = false;
  #end: ConduitEnd | undefined;
  readonly #closed = Promise.withResolvers<ConduitEnd>();
  #readable: ReadableStream<Uint8Array<ArrayBuffer>> | undefined;
  #writable: WritableStream<Uint8Array> | undefined;

  /**
   * Takes a conduit over; `dial` does it for most.
   *
   * @param conduit A connected conduit without a handler.
   * @param remoteAddr The dialed target.
   */
  constructor(
    private readonly conduit: Conduit,
    /** The target, as it was dialed. */
    readonly remoteAddr: TunnelAddr = { transport: "tcp", ...UNSPECIFIED },
  ) {
    this.localAddr = { transport: remoteAddr.transport, ...UNSPECIFIED };
    conduit.attach({
      onData: (chunk) => {
        this.#arrived.push(chunk);
        this.#serveReader();
      },
      onWritable: () => this.#serveWriter(),
      onEnd: () => {
        this.#peerEnded = true;
        this.#serveReader();
      },
      onClose: (end) => this.#onClose(end),
    });
  }

  /** Settles when both directions are over; says how. Never rejects. */
  get closed(): Promise<ConduitEnd> {
    return this.#closed.promise;
  }

  /**
   * Waits for bytes and puts them into `into`.
   *
   * @returns How many, or `null` when the other end has ended its side.
   * @throws {TunnelResetError} When either end gave up.
   * @throws {TunnelLostError} When the connection broke.
   */
  read(into: Uint8Array): Promise<number | null> {
    if (this.#reader !== undefined) {
      throw new TypeError("Cannot read: another read is waiting");
    }
    if (into.length === 0) return Promise.resolve(0);
    return new Promise((resolve, reject) => {
      this.#reader = { bytes: into, resolve, reject };
      this.#serveReader();
    });
  }

  /**
   * Writes all of `bytes`, which must not change meanwhile.
   *
   * @returns When the tunnel has taken them; not when they have arrived.
   * @throws As `read` does.
   */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#writer !== undefined) {
      throw new TypeError("Cannot write: another write is waiting");
    }
    if (this.#ended !== "no") {
      throw new TypeError("Cannot write: closeWrite() was called before");
    }
    if (this.#end !== undefined) return Promise.reject(errorOf(this.#end));
    return new Promise((resolve, reject) => {
      this.#writer = { bytes, resolve, reject };
      this.#taken = 0;
      this.#serveWriter();
    });
  }

  /**
   * Half-close: behind a write that is under way, the other end reads its end
   * of stream. Reading goes on.
   */
  closeWrite(): void {
    if (this.#end !== undefined || this.#ended !== "no") return;
    this.#ended = "wanted";
    this.#serveWriter();
  }

  /**
   * Gives the connection up: undelivered bytes are dropped, and a waiting
   * `read` or `write` is rejected. If both ends have ended their sides, written
   * bytes are delivered first.
   */
  close(): void {
    if (this.#end !== undefined) return;
    if (this.#peerEnded && this.#ended === "sent") return;
    this.conduit.reset("closed by its user");
  }

  /** `using`: the same as {@linkcode close}. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** `await using`: closes, and waits until nothing of it is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.closed;
  }

  /**
   * The incoming direction as a stream, always the same one; errors as `read`
   * throws them. Either this or `read`, not both.
   */
  get readable(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return this.#readable ??= new ReadableStream({
      pull: async (controller) => {
        const chunk = new Uint8Array(CHUNK_BYTES);
        const count = await this.read(chunk);
        if (count === null) controller.close();
        else controller.enqueue(chunk.subarray(0, count));
      },
      cancel: () => this.close(),
    });
  }

  /**
   * The outgoing direction as a stream, always the same one; closing it is the
   * half-close. Either this or `write`, not both.
   */
  get writable(): WritableStream<Uint8Array> {
    return this.#writable ??= new WritableStream({
      write: (chunk) => this.write(chunk),
      close: () => this.closeWrite(),
      abort: () => this.close(),
    });
  }

  #serveReader(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    if (this.#arrived.bytes > 0) {
      this.#reader = undefined;
      reader.resolve(this.#take(reader.bytes));
    } else if (this.#end !== undefined && this.#end.kind !== "clean") {
      this.#reader = undefined;
      reader.reject(errorOf(this.#end));
    } else if (this.#peerEnded) {
      this.#reader = undefined;
      reader.resolve(null);
    }
  }

  #serveWriter(): void {
    const writer = this.#writer;
    if (writer !== undefined) {
      this.#taken += this.conduit.write(writer.bytes.subarray(this.#taken));
      if (this.#taken < writer.bytes.length) return;
      this.#writer = undefined;
      writer.resolve();
    }
    if (this.#ended !== "wanted") return;
    this.#ended = "sent";
    this.conduit.end();
  }

  #onClose(end: ConduitEnd): void {
    this.#end = end;
    this.#closed.resolve(end);
    this.#serveReader();
    const writer = this.#writer;
    this.#writer = undefined;
    writer?.reject(errorOf(end));
  }

  #take(into: Uint8Array): number {
    let count = 0;
    while (count < into.length && this.#arrived.bytes > 0) {
      const run = this.#arrived.peek().subarray(0, into.length - count);
      into.set(run, count);
      count += run.length;
      this.#arrived.drop(run.length);
    }
    if (this.#end === undefined) this.conduit.consumed(count);
    return count;
  }
}

// Addresses of a connection through the tunnel, in the shape of `Deno.NetAddr`.

/** In the shape of `Deno.NetAddr`; a dialed name stays a name. */
export interface TunnelAddr {
  /** What the target is spoken to in. */
  readonly transport: "tcp" | "udp";
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string;
  /** 0 when there is none. */
  readonly port: number;
}

/** The address used when there is none (RFC 4291 section 2.5.2 for IPv6). */
export const UNSPECIFIED = { hostname: "0.0.0.0", port: 0 } as const;

/** What was dialed, `host:port` with IPv6 in brackets. */
export function addrOf(
  transport: TunnelAddr["transport"],
  address: string,
): TunnelAddr {
  return { transport, hostname: hostOf(address), port: portOf(address) };
}

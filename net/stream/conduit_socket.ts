/**
 * A conduit as a socket: what TLS runs over when its road is a tunnel.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { PooledQueue } from "../../proto/transfer/pooled_queue.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import type { ByteSocket } from "./byte_socket.ts";

/** One waiting call. */
interface Waiting<T> {
  readonly bytes: Uint8Array;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** See the module description. */
export class ConduitSocket implements ByteSocket, ConduitEvents {
  readonly closesInOrder = false;
  readonly alpn = "";
  readonly identity: PeerIdentity = ANONYMOUS;
  readonly localAddress = "tunnel";
  readonly remoteAddress: string;
  readonly #conduit: Conduit;
  /** Bounded by what the conduit delivers ahead of what was consumed. */
  readonly #arrived = new PooledQueue();
  #reader: Waiting<number | null> | undefined;
  #writer: Waiting<number> | undefined;
  #hasEnded = false;
  #peerEnded = false;
  #end: ConduitEnd | undefined;

  /**
   * Attaches at once.
   *
   * @param remoteAddress How the target is called.
   */
  constructor(conduit: Conduit, remoteAddress: string) {
    this.#conduit = conduit;
    this.remoteAddress = remoteAddress;
    conduit.attach(this);
  }

  read(into: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) => {
      this.#reader = { bytes: into, resolve, reject };
      this.#serveReader();
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    if (this.#end !== undefined) return Promise.reject(errorOf(this.#end));
    return new Promise((resolve, reject) => {
      this.#writer = { bytes, resolve, reject };
      this.onWritable();
    });
  }

  closeWrite(): Promise<void> {
    if (this.#end === undefined && !this.#hasEnded) {
      this.#hasEnded = true;
      this.#conduit.end();
    }
    return Promise.resolve();
  }

  close(): void {
    // Ended both ways it closes by itself, behind what is still to leave.
    if (this.#hasEnded && this.#peerEnded) return;
    this.reset();
  }

  reset(): void {
    this.#arrived.clear();
    if (this.#end === undefined) this.#conduit.reset("closed by its user");
  }

  // --- From the conduit --------------------------------------------------------

  onData(chunk: Uint8Array): void {
    this.#arrived.push(chunk);
    this.#serveReader();
  }

  onWritable(): void {
    const writer = this.#writer;
    if (writer === undefined) return;
    const taken = this.#conduit.write(writer.bytes);
    if (taken === 0 && writer.bytes.length > 0) return;
    this.#writer = undefined;
    writer.resolve(taken);
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.#serveReader();
  }

  onClose(end: ConduitEnd): void {
    this.#end = end;
    this.#serveReader();
    const writer = this.#writer;
    this.#writer = undefined;
    writer?.reject(errorOf(end));
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

  #take(into: Uint8Array): number {
    const run = this.#arrived.peek().subarray(0, into.length);
    const count = run.length;
    into.set(run);
    this.#arrived.drop(count);
    if (this.#end === undefined) this.#conduit.consumed(count);
    return count;
  }
}

/** What `endOf` turns back into `end`. */
function errorOf(end: ConduitEnd): Error {
  if (end.kind === "lost") return new Error(end.reason);
  const reason = end.kind === "reset" ? end.reason : "the connection is over";
  return Object.assign(new Error(reason), { code: "ECONNRESET" });
}

/**
 * A conduit as a stream: what TLS and HTTP run over inside a tunnel.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { PooledQueue } from "../../proto/transfer/pooled_queue.ts";
import { UnpolledStream } from "./unpolled_stream.ts";
import { Ready } from "../poll/poller.ts";
import { WOULD_BLOCK } from "./stream.ts";

export class ConduitStream extends UnpolledStream implements ConduitEvents {
  readonly closesInOrder = false;
  readonly localAddress = "tunnel";
  /** Limited by the conduit's window. */
  readonly #arrived = new PooledQueue();
  #hasEnded = false;
  #peerEnded = false;
  #end: ConduitEnd | undefined;

  /**
   * Attaches at once.
   *
   * @param remoteAddress How the target is called.
   */
  constructor(
    private readonly conduit: Conduit,
    readonly remoteAddress: string,
  ) {
    super();
    conduit.attach(this);
  }

  read(into: Uint8Array<ArrayBuffer>): number {
    this.mustBeOpen();
    if (this.#arrived.bytes > 0) return this.#take(into);
    const end = this.#end;
    if (end !== undefined && end.kind !== "clean") throw errorOf(end);
    return this.#peerEnded ? 0 : WOULD_BLOCK;
  }

  write(bytes: Uint8Array<ArrayBuffer>): number {
    this.mustBeOpen();
    if (this.#end !== undefined) throw errorOf(this.#end);
    return this.conduit.write(bytes);
  }

  /** Taken bytes belong to the tunnel already. */
  flush(): boolean {
    return true;
  }

  closeWrite(): void {
    this.mustBeOpen();
    if (this.#end !== undefined || this.#hasEnded) return;
    this.#hasEnded = true;
    this.conduit.end();
  }

  close(): void {
    // When both ends are closed it closes by itself, after its last bytes have
    // left.
    this.#close(this.#hasEnded && this.#peerEnded);
  }

  reset(): void {
    this.#close(false);
  }

  // --- From the conduit --------------------------------------------------------

  onData(chunk: Uint8Array): void {
    if (!this.isOpen) return;
    this.#arrived.push(chunk);
    this.notifier.notifySoon(Ready.READ);
  }

  onWritable(): void {
    this.notifier.notifySoon(Ready.WRITE);
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.notifier.notifySoon(Ready.PEER_END);
  }

  onClose(end: ConduitEnd): void {
    this.#end = end;
    this.notifier.notifySoon(Ready.HANGUP);
  }

  #take(into: Uint8Array<ArrayBuffer>): number {
    const run = this.#arrived.peek().subarray(0, into.length);
    const count = run.length;
    into.set(run);
    this.#arrived.drop(count);
    if (this.#end === undefined) this.conduit.consumed(count);
    return count;
  }

  #close(isInOrder: boolean): void {
    this.end(() => {
      this.#arrived.clear();
      if (this.#end !== undefined || isInOrder) return;
      this.conduit.reset("closed by its user");
    });
  }
}

/** What `endOf` turns back into `end`. */
function errorOf(end: ConduitEnd): Error {
  if (end.kind === "lost") return new Error(end.reason);
  const reason = end.kind === "reset" ? end.reason : "the connection is over";
  return Object.assign(new Error(reason), { code: "ECONNRESET" });
}

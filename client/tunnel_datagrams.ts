/**
 * A UDP flow through the tunnel: whole datagrams, one for each `send` and
 * `receive`, as with `Deno.DatagramConn` when it knows one peer only.
 *
 * @module
 */

import { OUTBOX_DATAGRAM_BYTES_MAX } from "../net/datagram/datagram_outbox.ts";
import type { Conduit, ConduitEnd } from "../proto/transfer/conduit.ts";
import { errorOf } from "./dial_error.ts";
import { type TunnelAddr, UNSPECIFIED } from "./tunnel_conn.ts";

/**
 * Datagrams that wait to be received; more are dropped, as UDP does. Their bytes
 * are bounded by the conduit's window, but empty ones take none of it.
 */
export const TUNNEL_WAITING_MAX = 4_096;

/** A call that waits for a datagram. */
interface Waiting {
  readonly resolve: (datagram: Uint8Array<ArrayBuffer> | null) => void;
  readonly reject: (error: Error) => void;
}

/** One `receive` at a time. */
export class TunnelDatagrams implements Disposable, AsyncDisposable {
  /** Unspecified: this end of a tunnel has no address, its route has. */
  readonly localAddr: TunnelAddr = { transport: "udp", ...UNSPECIFIED };
  /**
   * See {@linkcode TUNNEL_WAITING_MAX}; only received datagrams are consumed.
   */
  readonly #arrived: Uint8Array<ArrayBuffer>[] = [];
  #receiver: Waiting | undefined;
  #peerEnded = false;
  #end: ConduitEnd | undefined;
  readonly #closed = Promise.withResolvers<ConduitEnd>();

  /**
   * Takes a conduit over; `dialDatagrams` does it for most.
   *
   * @param conduit A connected conduit of datagrams, not attached to.
   * @param remoteAddr What was dialed.
   */
  constructor(
    private readonly conduit: Conduit,
    /** The target, as it was dialed. */
    readonly remoteAddr: TunnelAddr,
  ) {
    conduit.attach({
      onData: (datagram) => {
        if (this.#arrived.length >= TUNNEL_WAITING_MAX) {
          return conduit.consumed(datagram.length);
        }
        this.#arrived.push(datagram.slice());
        this.#serve();
      },
      onWritable() {},
      onEnd: () => {
        this.#peerEnded = true;
        this.#serve();
      },
      onClose: (end) => {
        this.#end = end;
        this.#closed.resolve(end);
        this.#serve();
      },
    });
  }

  /** Settles when the flow is over; says how. Never rejects. */
  get closed(): Promise<ConduitEnd> {
    return this.#closed.promise;
  }

  /**
   * Sends one datagram, or drops it without notice when there is no room, as
   * UDP does.
   *
   * @throws {RangeError} If it is larger than UDP allows.
   * @throws {TunnelResetError} When either end gave up.
   * @throws {TunnelLostError} When the connection broke.
   */
  send(datagram: Uint8Array): void {
    if (datagram.length > OUTBOX_DATAGRAM_BYTES_MAX) {
      throw new RangeError(
        `Cannot send a datagram of ${datagram.length} bytes: ` +
          `${OUTBOX_DATAGRAM_BYTES_MAX} are allowed`,
      );
    }
    if (this.#end !== undefined) throw errorOf(this.#end);
    this.conduit.write(datagram);
  }

  /**
   * Waits for the next datagram.
   *
   * @returns It, or `null` when no more will come.
   * @throws {TunnelResetError} When either end gave up.
   * @throws {TunnelLostError} When the connection broke.
   */
  receive(): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#receiver !== undefined) {
      throw new TypeError("Cannot receive: another receive is waiting");
    }
    return new Promise((resolve, reject) => {
      this.#receiver = { resolve, reject };
      this.#serve();
    });
  }

  /** Ends the flow; a waiting `receive` is rejected. */
  close(): void {
    if (this.#end === undefined) this.conduit.reset("closed by its user");
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

  /** Datagrams until the other end sends no more. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (;;) {
      const datagram = await this.receive();
      if (datagram === null) return;
      yield datagram;
    }
  }

  #serve(): void {
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    const datagram = this.#arrived.shift();
    if (datagram !== undefined) {
      this.#receiver = undefined;
      if (this.#end === undefined) this.conduit.consumed(datagram.length);
      receiver.resolve(datagram);
    } else if (this.#end !== undefined && this.#end.kind !== "clean") {
      this.#receiver = undefined;
      receiver.reject(errorOf(this.#end));
    } else if (this.#peerEnded) {
      this.#receiver = undefined;
      receiver.resolve(null);
    }
  }
}

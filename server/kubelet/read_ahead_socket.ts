/**
 * A socket that can be looked into before anybody reads: for heads, bodies and
 * peers that leave. It holds one read's worth of bytes and no more.
 *
 * @module
 */

import type { ByteSocket } from "../../net/stream/byte_socket.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";

/** Of one read: a TLS record, which is what one read gives at most. */
const READ_BYTES = 16 * 1024;

/** See the module description. */
export class ReadAheadSocket implements ByteSocket {
  readonly closesInOrder: boolean;
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: PeerIdentity;
  readonly #socket: ByteSocket;
  readonly #buffer = new Uint8Array(READ_BYTES);
  #bytes = NO_BYTES;
  #filling: Promise<boolean> | undefined;
  #hasEnded = false;

  constructor(socket: ByteSocket) {
    this.closesInOrder = socket.closesInOrder;
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.alpn = socket.alpn;
    this.serverName = socket.serverName ?? "";
    this.identity = socket.identity;
    this.#socket = socket;
  }

  /** What is here; a view until the next `fill` or `read`. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Takes `count` bytes off the front of what is here. */
  drop(count: number): void {
    this.#bytes = this.#bytes.subarray(count);
  }

  /**
   * Waits until something is here. May be called while another call waits.
   *
   * @returns False when the peer has ended its side and nothing is left.
   */
  fill(): Promise<boolean> {
    if (this.#bytes.length > 0) return Promise.resolve(true);
    if (this.#hasEnded) return Promise.resolve(false);
    return this.#filling ??= this.#readOnce();
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#filling !== undefined || this.#bytes.length > 0) {
      if (!await this.fill()) return null;
      const run = this.#bytes.subarray(0, into.length);
      into.set(run);
      this.drop(run.length);
      return run.length;
    }
    return this.#hasEnded ? null : await this.#socket.read(into);
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
  }

  /** Writes all of `bytes`. */
  async writeAll(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      at += await this.#socket.write(bytes.subarray(at));
    }
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#socket.close();
  }

  reset(): void {
    this.#socket.reset();
  }

  async #readOnce(): Promise<boolean> {
    try {
      const count = await this.#socket.read(this.#buffer);
      if (count === null) this.#hasEnded = true;
      else this.#bytes = this.#buffer.subarray(0, count);
      return count !== null;
    } finally {
      this.#filling = undefined;
    }
  }
}

const NO_BYTES: Uint8Array = new Uint8Array(0);

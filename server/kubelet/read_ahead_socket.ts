/**
 * A socket that can be looked into before anybody reads: for heads, bodies and
 * peers that leave. It holds one read's worth of octets and no more.
 *
 * @module
 */

import type { OctetSocket } from "../../host/sockets/octet_socket.ts";
import type { PeerIdentity } from "../../proto/link/link.ts";

/** Of one read: a TLS record, which is what one read gives at most. */
const READ_OCTETS = 16 * 1024;

/** See the module description. */
export class ReadAheadSocket implements OctetSocket {
  readonly closesInOrder: boolean;
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: PeerIdentity;
  readonly #socket: OctetSocket;
  readonly #buffer = new Uint8Array(READ_OCTETS);
  #octets = NO_OCTETS;
  #filling: Promise<boolean> | undefined;
  #hasEnded = false;

  constructor(socket: OctetSocket) {
    this.closesInOrder = socket.closesInOrder;
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.alpn = socket.alpn;
    this.serverName = socket.serverName ?? "";
    this.identity = socket.identity;
    this.#socket = socket;
  }

  /** What is here; a view until the next `fill` or `read`. */
  get octets(): Uint8Array {
    return this.#octets;
  }

  /** Takes `count` octets off the front of what is here. */
  drop(count: number): void {
    this.#octets = this.#octets.subarray(count);
  }

  /**
   * Waits until something is here. May be called while another call waits.
   *
   * @returns False when the peer has ended its side and nothing is left.
   */
  fill(): Promise<boolean> {
    if (this.#octets.length > 0) return Promise.resolve(true);
    if (this.#hasEnded) return Promise.resolve(false);
    return this.#filling ??= this.#readOnce();
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#filling !== undefined || this.#octets.length > 0) {
      if (!await this.fill()) return null;
      const run = this.#octets.subarray(0, into.length);
      into.set(run);
      this.drop(run.length);
      return run.length;
    }
    return this.#hasEnded ? null : await this.#socket.read(into);
  }

  write(octets: Uint8Array): Promise<number> {
    return this.#socket.write(octets);
  }

  /** Writes all of `octets`. */
  async writeAll(octets: Uint8Array): Promise<void> {
    let at = 0;
    while (at < octets.length) {
      at += await this.#socket.write(octets.subarray(at));
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
      else this.#octets = this.#buffer.subarray(0, count);
      return count !== null;
    } finally {
      this.#filling = undefined;
    }
  }
}

const NO_OCTETS: Uint8Array = new Uint8Array(0);

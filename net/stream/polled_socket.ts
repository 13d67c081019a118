/**
 * A connected socket of the C library, or TLS over one, as {@linkcode ByteSocket}.
 *
 * Reads and writes happen at once where they can. It is for those who read a
 * socket themselves, such as a TLS gate or the first look at a caller; a
 * transfer takes the descriptor over (`PolledConduit`) and does without promises.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import type { ByteSocket, PeerCredentials } from "./byte_socket.ts";
import { type Polled, Ready } from "../poll/poller.ts";
import type { PolledStream } from "./polled_stream.ts";
import { closedError, WOULD_BLOCK } from "./stream_descriptor.ts";
import { cannotWait } from "../libc/system_error.ts";

/** What every stream socket is waited for: all of it, once each time. */
export const STREAM_INTEREST: number = Ready.READ | Ready.WRITE |
  Ready.URGENT | Ready.PEER_END | Ready.EDGE;

/** A call that waits. */
interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

interface Reading extends Waiting<number | null> {
  readonly into: Uint8Array<ArrayBuffer>;
}

/** What was taken waits for the kernel, too: then it leaves whatever comes. */
interface Writing extends Waiting<number> {
  readonly bytes: Uint8Array<ArrayBuffer>;
  taken: number;
}

/** Where a socket leads, and what TLS found out about it. */
export interface SocketEnds {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn?: string;
  readonly serverName?: string;
  readonly identity?: PeerIdentity;
}

/** See the module description. */
export class PolledSocket implements ByteSocket, Polled {
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: PeerIdentity;
  readonly closesInOrder: boolean;
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly #descriptor: PolledStream;
  #reading: Reading | undefined;
  #writing: Writing | undefined;
  #closed: (() => void) | undefined;
  #peer: PeerCredentials | undefined;

  /** @throws {Error} Out of memory or watches; the descriptor is closed then. */
  constructor(descriptor: PolledStream, ends: SocketEnds) {
    this.#descriptor = descriptor;
    this.alpn = ends.alpn ?? "";
    this.serverName = ends.serverName ?? "";
    this.identity = ends.identity ?? ANONYMOUS;
    this.closesInOrder = descriptor.closesInOrder;
    this.remoteAddress = ends.remoteAddress;
    this.localAddress = ends.localAddress;
    const { poller, number } = descriptor;
    if (poller.add(number, STREAM_INTEREST, this)) return;
    descriptor.close();
    throw cannotWait();
  }

  /** Its descriptor, for options. */
  get number(): number {
    return this.#descriptor.number;
  }

  /** Asked for once: later its number may be another socket's. */
  get peerCredentials(): PeerCredentials | undefined {
    if (this.#descriptor.isTcp) return undefined;
    if (this.#peer === undefined && this.#descriptor.isOpen) {
      this.#peer = this.#descriptor.peerCredentials();
    }
    return this.#peer;
  }

  /** `closed` is called when it is closed from here, however often that is. */
  set onClosed(closed: () => void) {
    this.#closed = closed;
  }

  /**
   * Gives the descriptor to `polled`, who closes this socket and not the
   * descriptor; it must not be read or written here any more.
   */
  handOver(polled: Polled): PolledStream {
    const { poller, number, isOpen } = this.#descriptor;
    if (isOpen) poller.add(number, STREAM_INTEREST, polled);
    return this.#descriptor;
  }

  /** The same connection over another stream, made of its own; not this any more. */
  over(dress: (stream: PolledStream) => PolledStream): PolledSocket {
    return new PolledSocket(dress(this.#descriptor), this);
  }

  read(into: Uint8Array): Promise<number | null> {
    const bytes = into as Uint8Array<ArrayBuffer>;
    try {
      const count = this.#descriptor.read(bytes);
      if (count !== WOULD_BLOCK) return Promise.resolve(count || null);
    } catch (error) {
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#reading = { into: bytes, resolve, reject };
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    const own = bytes as Uint8Array<ArrayBuffer>;
    let taken: number;
    try {
      taken = this.#descriptor.write(own);
      const isWritten = taken > 0 || own.length === 0;
      if (isWritten && this.#descriptor.flush()) return Promise.resolve(taken);
    } catch (error) {
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#writing = { bytes: own, taken, resolve, reject };
    });
  }

  async closeWrite(): Promise<void> {
    this.#descriptor.closeWrite();
    if (this.#descriptor.flush()) return;
    // Until our goodbye is on its way, `close` would take it back.
    await new Promise<number>((resolve, reject) => {
      this.#writing = { bytes: NOTHING, taken: 0, resolve, reject };
    });
  }

  close(): void {
    this.#descriptor.close();
    this.#over();
  }

  reset(): void {
    this.#descriptor.reset();
    this.#over();
  }

  onReady(ready: number): void {
    this.#descriptor.noticed(ready);
    const [reading, writing] = [this.#reading, this.#writing];
    if (reading !== undefined) this.#readOn(reading);
    if (writing !== undefined) this.#writeOn(writing);
  }

  onFault(): void {
    this.reset();
  }

  #readOn({ into, resolve, reject }: Reading): void {
    try {
      const count = this.#descriptor.read(into);
      if (count === WOULD_BLOCK) return;
      this.#reading = undefined;
      resolve(count || null);
    } catch (error) {
      this.#reading = undefined;
      reject(error);
    }
  }

  #writeOn(writing: Writing): void {
    const { bytes, resolve, reject } = writing;
    try {
      if (writing.taken === 0 && bytes.length > 0) {
        writing.taken = this.#descriptor.write(bytes);
        if (writing.taken === 0) return;
      }
      if (!this.#descriptor.flush()) return;
      this.#writing = undefined;
      resolve(writing.taken);
    } catch (error) {
      this.#writing = undefined;
      reject(error);
    }
  }

  #over(): void {
    this.#reading?.reject(closedError());
    this.#writing?.reject(closedError());
    this.#reading = this.#writing = undefined;
    this.#closed?.();
  }
}

const NOTHING = new Uint8Array(0);

/**
 * A connected TCP or unix socket of the C library: what can be done with it at
 * once, without waiting for anything.
 *
 * It knows nothing of who waits until there is something to do; that is for
 * `Poller` and whoever uses both.
 *
 * @module
 */

import { lastError, type LibC } from "../libc/libc.ts";
import type { PolledStream } from "./polled_stream.ts";
import {
  type PeerCredentials,
  peerCredentials,
} from "../libc/peer_credentials.ts";
import { type Poller, Ready } from "../poll/poller.ts";
import { Errno, systemError } from "../libc/system_error.ts";

const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const SHUT_WR = 1;
/** A peer that is gone is an error, not a signal. */
const MSG_NOSIGNAL = 0x4000;

/** What a read finds when it finds no bytes. */
export const WOULD_BLOCK = -1;

/** See the module description. */
export class StreamDescriptor implements PolledStream {
  readonly closesInOrder = true;
  readonly number: number;
  readonly poller: Poller;
  readonly isTcp: boolean;
  readonly #library: LibC;
  #isOpen = true;
  /** False: all was read, and the kernel has said nothing since. */
  #mayRead: boolean;
  /** An end or a failure is behind what there is to read, or a gap in it. */
  #endIsNear = false;

  /**
   * @param mayRead Whether the peer may have said something already.
   * @param isPrompt Nagle's algorithm is off already.
   */
  constructor(
    library: LibC,
    poller: Poller,
    number: number,
    { isTcp, mayRead, isPrompt = false }: {
      readonly isTcp: boolean;
      readonly mayRead: boolean;
      readonly isPrompt?: boolean;
    },
  ) {
    this.#library = library;
    this.#mayRead = mayRead;
    this.poller = poller;
    this.number = number;
    this.isTcp = isTcp;
    // Nagle's algorithm would hold small writes back for up to 40 ms.
    if (isTcp && !isPrompt) {
      library.setsockopt(number, IPPROTO_TCP, TCP_NODELAY, ON, ON.length);
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Who made a unix connection (unix(7)); `undefined` where it is no process of
   * this machine that this process can see.
   */
  peerCredentials(): PeerCredentials | undefined {
    const peer = peerCredentials(this.#library, this.number);
    return peer?.pid === 0 ? undefined : peer;
  }

  /**
   * To be told what the poller says.
   *
   * @param ready Bits of {@linkcode Ready}.
   */
  noticed(ready: number): void {
    if ((ready & ~Ready.WRITE) !== 0) this.#mayRead = true;
    if ((ready & ENDS) !== 0) this.#endIsNear = true;
  }

  /**
   * Reads what is there.
   *
   * @param into Must not be empty.
   * @returns How many bytes, 0 at the peer's end, or {@linkcode WOULD_BLOCK}.
   * @throws A system error with its `code`.
   */
  read(into: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    if (!this.#mayRead) return WOULD_BLOCK;
    for (;;) {
      const { length } = into;
      const count = this.#library.recv(this.number, into, sizeOf(length), 0);
      // A short read drained the kernel, so what comes next is told (epoll(7)).
      // Only what was told of together with the bytes and is behind them is not.
      if (count < length && !this.#endIsNear) this.#mayRead = false;
      if (count >= 0) return count;
      if (this.#failed() === "try later") return WOULD_BLOCK;
      this.#mayRead = true;
    }
  }

  /**
   * Writes what there is room for.
   *
   * @returns How many bytes; 0 when there is no room.
   * @throws A system error with its `code`.
   */
  write(bytes: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    for (;;) {
      const { length } = bytes;
      const { send } = this.#library;
      const count = send(this.number, bytes, sizeOf(length), MSG_NOSIGNAL);
      if (count >= 0) return count;
      if (this.#failed() === "try later") return 0;
    }
  }

  /** What was taken is the kernel's already. */
  flush(): boolean {
    return true;
  }

  /** Ends our side in order. @throws A system error with its `code`. */
  closeWrite(): void {
    if (this.#library.shutdown(this.number, SHUT_WR) === 0) return;
    throw systemError(lastError(this.#library));
  }

  /** Frees it. What was written still leaves. Harmless a second time. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    void this.poller.close(this.number);
  }

  /** Frees it so that the peer sees a failure, where that is possible. */
  reset(): void {
    if (!this.#isOpen) return;
    // Linux dissolves a connection that is connected to nobody, with RST.
    if (this.isTcp) {
      this.#library.connect(this.number, NOBODY, NOBODY.length);
    }
    this.close();
  }

  #failed(): "try later" | "try again" {
    const number = lastError(this.#library);
    if (number === Errno.EAGAIN) return "try later";
    if (number === Errno.EINTR) return "try again";
    throw systemError(number);
  }
}

/** As the platform's own sockets say it. */
export function closedError(): Error {
  return new Deno.errors.BadResource("the socket is closed");
}

/**
 * What is told once and must be read up to. A read stops in front of urgent data
 * (tcp(7)), however much there is behind it.
 */
const ENDS = Ready.PEER_END | Ready.HANGUP | Ready.ERROR | Ready.URGENT;

const ON = new Uint8Array(new Uint32Array([1]).buffer);
/** `struct sockaddr` of family AF_UNSPEC (0). */
const NOBODY = new Uint8Array(16);

/**
 * A length as the platform's calls take it fastest. Whole buffers, of few sizes,
 * are what is nearly always read into.
 */
function sizeOf(length: number): bigint {
  if (length === lastLength) return lastSize;
  lastLength = length;
  return lastSize = BigInt(length);
}

let lastLength = 0;
let lastSize = 0n;

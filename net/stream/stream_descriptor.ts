/**
 * A connected TCP or unix socket of the C library as a {@linkcode Stream}: read
 * and written at once, when the poller reports that it is ready.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import {
  IPPROTO_TCP,
  setSocketOption,
  TCP_NODELAY,
} from "../libc/socket_option.ts";
import { boundAddress } from "../libc/sockets.ts";
import { lastError, type LibC } from "../libc/libc.ts";
import {
  type PeerCredentials,
  peerCredentials,
} from "../libc/peer_credentials.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import {
  closedError,
  notifyUser,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "./stream.ts";
import { type Pollable, type Poller, Ready } from "../poll/poller.ts";

const SHUT_WR = 1;
/** A peer that is gone is an error, not a signal. */
const MSG_NOSIGNAL = 0x4000;

/**
 * The events that a stream socket waits for, each reported once. Room is not
 * among them until there was none: a new socket has it, and one of a unix path
 * reports it whenever its peer reads.
 */
const STREAM_INTEREST = Ready.READ | Ready.URGENT | Ready.PEER_END |
  Ready.EDGE;

/** The same, and room to write; being connected is that, too (connect(2)). */
export const ROOM_INTEREST: number = STREAM_INTEREST | Ready.WRITE;

/** Facts about a connected socket. */
export interface StreamFacts {
  readonly remoteAddress: string;
  /** For a unix socket; for TCP the kernel is asked when it is needed. */
  readonly localAddress?: string;
  readonly isTcp: boolean;
  /** Whether the peer may have sent something already. */
  readonly mayRead: boolean;
  /** Nagle's algorithm is off already. */
  readonly isPrompt?: boolean;
}

export class StreamDescriptor implements Stream, Pollable {
  readonly turn: Poller;
  readonly remoteAddress: string;
  onClosed: (() => void) | undefined;
  readonly #isTcp: boolean;
  #user: StreamUser | undefined;
  #isOpen = true;
  /** False: all was read, and the kernel has reported nothing since. */
  #mayRead: boolean;
  /** An end or a failure comes after readable bytes, or after a gap in them. */
  #endIsNear = false;
  /** There was no room once: from then on it is reported. */
  #awaitsRoom = false;
  #peer: PeerCredentials | undefined;
  #localAddress: string | undefined;

  /** @throws {Error} Out of memory or watches; the descriptor is closed then. */
  constructor(
    private readonly library: LibC,
    poller: Poller,
    readonly descriptor: number,
    facts: StreamFacts,
  ) {
    this.#mayRead = facts.mayRead;
    this.#isTcp = facts.isTcp;
    this.turn = poller;
    this.remoteAddress = facts.remoteAddress;
    this.#localAddress = facts.localAddress;
    // Nagle's algorithm would hold small writes back for up to 40 ms.
    if (facts.isTcp && facts.isPrompt !== true) {
      setSocketOption(library, descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    }
    if (poller.add(descriptor, STREAM_INTEREST, this)) return;
    library.close(descriptor);
    throw cannotWait();
  }

  /**
   * Asked for once, when it is wanted: most connections need no such call. Empty
   * when it was closed before, as its number may be another socket's by then.
   */
  get localAddress(): string {
    if (this.#localAddress === undefined && this.#isOpen) {
      const at = boundAddress(this.library, this.descriptor);
      this.#localAddress = at && hostPort(at.hostname, at.port);
    }
    return this.#localAddress ?? "";
  }

  get alpn(): string {
    return "";
  }

  get serverName(): string {
    return "";
  }

  get identity(): PeerIdentity {
    return ANONYMOUS;
  }

  get closesInOrder(): boolean {
    return true;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Read once, because its number may be another socket's later; `undefined`
   * when no visible process of this machine has it.
   */
  peerCredentials(): PeerCredentials | undefined {
    if (this.#isTcp) return undefined;
    if (this.#peer === undefined && this.#isOpen) {
      const peer = peerCredentials(this.library, this.descriptor);
      this.#peer = peer?.pid === 0 ? undefined : peer;
    }
    return this.#peer;
  }

  notify(user: StreamUser): void {
    this.#user = user;
  }

  goOn(): void {
    if (this.#isOpen) this.turn.goOn(this);
  }

  onReady(ready: number): void {
    if ((ready & ~Ready.WRITE) !== 0) this.#mayRead = true;
    if ((ready & ENDS) !== 0) this.#endIsNear = true;
    this.#user?.onReady(ready);
  }

  onFault(): void {
    if (this.#user === undefined) this.reset();
    else this.#user.onFault();
  }

  read(into: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    if (!this.#mayRead) return WOULD_BLOCK;
    for (;;) {
      const { length } = into;
      const count = this.library.recv(
        this.descriptor,
        into,
        sizeOf(length),
        0,
      );
      // A short read drained the kernel, so later bytes are reported
      // (epoll(7)), but not an end that was reported together with these bytes.
      if (count < length && !this.#endIsNear) this.#mayRead = false;
      if (count >= 0) return count;
      if (this.#failed() === "try later") return WOULD_BLOCK;
      this.#mayRead = true;
    }
  }

  write(bytes: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    for (;;) {
      const { length } = bytes;
      const { send } = this.library;
      const count = send(this.descriptor, bytes, sizeOf(length), MSG_NOSIGNAL);
      if (count === length) return count;
      if (count < 0 && this.#failed() === "try again") continue;
      if (!this.#awaitsRoom) this.#awaitRoom();
      return Math.max(0, count);
    }
  }

  #awaitRoom(): void {
    if (!this.turn.change(this.descriptor, ROOM_INTEREST)) throw cannotWait();
    this.#awaitsRoom = true;
  }

  /** Taken bytes belong to the kernel already. */
  flush(): boolean {
    return true;
  }

  closeWrite(): void {
    if (!this.#isOpen) throw closedError();
    if (this.library.shutdown(this.descriptor, SHUT_WR) === 0) return;
    throw systemError(lastError(this.library));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    void this.turn.close(this.descriptor);
    this.onClosed?.();
    const user = this.#user;
    // Garbage in the old space keeps the objects that it refers to, and these
    // keep the next ones.
    this.#user = this.onClosed = undefined;
    if (user !== undefined) {
      queueMicrotask(() => notifyUser(user, Ready.HANGUP));
    }
  }

  reset(): void {
    if (!this.#isOpen) return;
    // Linux ends a connection with RST when it is connected to no address.
    if (this.#isTcp) {
      this.library.connect(this.descriptor, NOBODY, NOBODY.length);
    }
    this.close();
  }

  #failed(): "try later" | "try again" {
    const number = lastError(this.library);
    if (number === Errno.EAGAIN) return "try later";
    if (number === Errno.EINTR) return "try again";
    throw systemError(number);
  }
}

/**
 * Reported once, and to be read up to. A read stops before urgent data
 * (tcp(7)), however many bytes follow it.
 */
const ENDS = Ready.PEER_END | Ready.HANGUP | Ready.ERROR | Ready.URGENT;

/** `struct sockaddr` of family AF_UNSPEC (0). */
const NOBODY = new Uint8Array(16);

/**
 * A length in the fastest form for the platform's calls. Nearly all reads are
 * into whole buffers of few sizes.
 */
function sizeOf(length: number): bigint {
  if (length === lastLength) return lastSize;
  lastLength = length;
  return lastSize = BigInt(length);
}

let lastLength = 0;
let lastSize = 0n;

/**
 * The listening sockets of this process: those with a listener, and those that
 * are open and wait for one.
 *
 * A socket outlives its listener. It comes here from another process (a
 * predecessor, systemd) or from a listener that made room for another one, and
 * the next listener at its address takes it instead of binding one: no
 * connection that the kernel has queued is lost.
 *
 * Sockets that a predecessor still accepts with are held: they are open here, and
 * nothing is accepted before {@linkcode SocketStore.start}.
 *
 * @module
 */

import { type LibC, openLibc } from "../libc/libc.ts";
import { sharedPoller } from "../poll/poller.ts";
import { keyOfDescriptor } from "./socket_key.ts";

/** A socket with a listener. */
export interface ListeningSocket {
  readonly descriptor: number;
  /** Whether it waits to be started. */
  readonly isHeld: boolean;
  /** No other process accepts with it any more, so it may. */
  start(): void;
  /** Another process accepts with it for now; absent: that cannot be. */
  hold?(): void;
  /** Another process listens with it: nothing more is accepted or read here. */
  handedOver(): void;
}

/** A socket that waits for a listener. */
export interface WaitingSocket {
  readonly descriptor: number;
  readonly isHeld: boolean;
}

/** Which sockets are meant, by their keys (`socket_key.ts`). */
export type SocketChoice = (key: string) => boolean;

const ALL: SocketChoice = () => true;

const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_SETFL = 4;
const O_NONBLOCK = 0x800;

export class SocketStore {
  readonly #library: LibC;
  readonly #waiting = new Map<string, WaitingSocket>();
  readonly #listening = new Map<ListeningSocket, string>();

  constructor(library: LibC) {
    this.#library = library;
  }

  /** Sockets are kept beyond this process: their paths stay. */
  areKept = false;

  /** Sockets with a listener. */
  get listening(): ReadonlyMap<ListeningSocket, string> {
    return this.#listening;
  }

  /** Sockets that wait for a listener. */
  get waiting(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  has(key: string): boolean {
    return this.#waiting.has(key);
  }

  /**
   * Takes a socket in. What is no listening socket is closed, and so is a second
   * one for the same address.
   *
   * @param isHeld Another process accepts with it until it is started.
   * @returns Its key.
   */
  put(descriptor: number, isHeld = false): string | undefined {
    const key = keyOfDescriptor(this.#library, descriptor);
    if (key === undefined || this.#waiting.has(key)) {
      this.#library.close(descriptor);
      return undefined;
    }
    // The process that bound it may have used it blocking, and children may
    // have it.
    this.#library.fcntl(descriptor, F_SETFL, O_NONBLOCK);
    this.#library.fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    this.#waiting.set(key, { descriptor, isHeld });
    return key;
  }

  /** Gives a socket to a listener, which closes it one day. */
  take(key: string | undefined): WaitingSocket | undefined {
    if (key === undefined) return undefined;
    const socket = this.#waiting.get(key);
    this.#waiting.delete(key);
    return socket;
  }

  /** Closes what was not taken. @returns What that was. */
  close(choice: SocketChoice = ALL): readonly string[] {
    const closed: string[] = [];
    for (const [key, { descriptor }] of [...this.#waiting]) {
      if (!choice(key)) continue;
      this.#waiting.delete(key);
      this.#library.close(descriptor);
      closed.push(key);
    }
    return closed;
  }

  /** Registers a listener. @returns How to end that. */
  opened(socket: ListeningSocket): () => void {
    const key = keyOfDescriptor(this.#library, socket.descriptor);
    if (key === undefined) return () => {};
    this.#listening.set(socket, key);
    return () => void this.#listening.delete(socket);
  }

  /** Those that are held are so no longer, whether they are taken or not. */
  start(choice: SocketChoice = ALL): void {
    for (const [key, { descriptor }] of this.#waiting) {
      if (choice(key)) this.#waiting.set(key, { descriptor, isHeld: false });
    }
    for (const [socket, key] of [...this.#listening]) {
      if (choice(key) && socket.isHeld) socket.start();
    }
  }

  /** Another process accepts with these until they are started again. */
  hold(choice: SocketChoice): void {
    for (const [socket, key] of [...this.#listening]) {
      if (choice(key)) socket.hold?.();
    }
  }

  /** Another process listens with these from now on. */
  handOver(choice: SocketChoice = ALL): void {
    for (const [socket, key] of [...this.#listening]) {
      if (!choice(key)) continue;
      this.#listening.delete(socket);
      socket.handedOver();
    }
  }
}

let shared: SocketStore | undefined;

/**
 * The one of this process; `undefined` where sockets are the platform's, which
 * neither shows their descriptors nor takes any.
 */
export function socketStore(): SocketStore | undefined {
  if (shared !== undefined) return shared;
  const library = openLibc();
  if (library === undefined || sharedPoller() === undefined) return undefined;
  return shared = new SocketStore(library);
}

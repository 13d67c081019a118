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
 * Several processes of one program may each have a socket at one address
 * (SO_REUSEPORT, {@linkcode Sharing}); one process that takes their place has
 * them all.
 *
 * @module
 */

import { type LibC, openLibc } from "../libc/libc.ts";
import {
  setSocketOption,
  socketCookie,
  SOL_SOCKET,
} from "../libc/socket_option.ts";
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
  /** A connection to it that another process has accepted. */
  pass?(descriptor: number): void;
  /** Also accepts with the socket of another process, for as long as that cannot. */
  adopt?(descriptor: number): void;
  /** Those processes can. */
  letGo?(): void;
}

/** A socket that waits for a listener. */
export interface WaitingSocket {
  readonly descriptor: number;
  readonly isHeld: boolean;
}

/** How this process shares its addresses with others of its program. */
export interface Sharing {
  /**
   * No other program may have the address: it is bound exclusively, and shared
   * afterwards, so that an address in use is reported.
   */
  readonly isAlone: boolean;
  /** Sockets opened now wait to be started: others serve meanwhile. */
  readonly isHeld: boolean;
  /** The port that another process was given where any would do. */
  portFor(kind: "tcp" | "udp", hostname: string): number | undefined;
  /** The system chose a port, and the other processes must have the same. */
  chose(kind: "tcp" | "udp", hostname: string, port: number): void;
  opened(key: string, socket: ListeningSocket): void;
  closed(key: string): void;
  /**
   * Settles when no connection is passed on to a listener that was closed
   * before.
   */
  settled(): Promise<void>;
}

/** Which sockets are meant, by their keys (`socket_key.ts`). */
export type KeptSocketChoice = (key: string) => boolean;

const ALL: KeptSocketChoice = () => true;

const SO_REUSEPORT = 15;

const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_SETFL = 4;
const O_NONBLOCK = 0x800;

export class SocketStore {
  /** Several of one address differ: they were several processes'. */
  readonly #waiting = new Map<string, readonly WaitingSocket[]>();
  readonly #listening = new Map<ListeningSocket, string>();

  /**
   * By key: connections that were passed on are served here even if no more
   * come.
   */
  readonly #passed = new Map<string, ListeningSocket>();

  constructor(private readonly library: LibC) {}

  /** Sockets are kept beyond this process: their paths stay. */
  areKept = false;

  /** Absent: addresses are this process's alone. */
  sharing: Sharing | undefined;

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
   * Takes a socket in. It is closed if it does not listen, if it is here
   * already, or if there is another one at the same path.
   *
   * @param isHeld Another process accepts with it until it is started.
   * @returns Its key.
   */
  put(descriptor: number, isHeld = false): string | undefined {
    const key = keyOfDescriptor(this.library, descriptor);
    if (key === undefined || this.#isKnown(key, descriptor)) {
      this.library.close(descriptor);
      return undefined;
    }
    // The process that bound it may have used it blocking, and children may
    // have it.
    this.library.fcntl(descriptor, F_SETFL, O_NONBLOCK);
    this.library.fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    const others = this.#waiting.get(key) ?? [];
    this.#waiting.set(key, [...others, { descriptor, isHeld }]);
    return key;
  }

  /** Gives sockets to a listener, which closes them one day. */
  take(key: string | undefined): readonly WaitingSocket[] {
    if (key === undefined) return [];
    const sockets = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    if (this.sharing !== undefined) {
      for (const { descriptor } of sockets) this.share(descriptor);
    }
    return sockets;
  }

  /** Other processes may bind what this socket is, or will be, bound to. */
  share(descriptor: number): void {
    setSocketOption(this.library, descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
  }

  /** Closes the sockets that were not taken. @returns Their keys. */
  close(choice: KeptSocketChoice = ALL): readonly string[] {
    const closed: string[] = [];
    for (const [key, sockets] of [...this.#waiting]) {
      if (!choice(key)) continue;
      this.#waiting.delete(key);
      for (const { descriptor } of sockets) this.library.close(descriptor);
      closed.push(key);
    }
    return closed;
  }

  /** Registers a listener. @returns How to end that. */
  opened(socket: ListeningSocket): () => void {
    const key = keyOfDescriptor(this.library, socket.descriptor);
    if (key === undefined) return () => {};
    this.#listening.set(socket, key);
    if (this.sharing !== undefined && socket.pass) {
      this.#passed.set(key, socket);
    }
    this.sharing?.opened(key, socket);
    return () => {
      if (!this.#listening.delete(socket)) return;
      this.sharing?.closed(key);
    };
  }

  /** Those that are held are so no longer, whether they are taken or not. */
  start(choice: KeptSocketChoice = ALL): void {
    for (const [key, sockets] of this.#waiting) {
      if (!choice(key)) continue;
      const started = sockets.map(({ descriptor }) => ({
        descriptor,
        isHeld: false,
      }));
      this.#waiting.set(key, started);
    }
    for (const [socket, key] of [...this.#listening]) {
      if (choice(key) && socket.isHeld) socket.start();
    }
  }

  /** Another process accepts with these until they are started again. */
  hold(choice: KeptSocketChoice): void {
    for (const [socket, key] of [...this.#listening]) {
      if (choice(key)) socket.hold?.();
    }
  }

  /** A connection that another process of this program has accepted; else closes. */
  pass(key: string, descriptor: number): void {
    const socket = this.#passed.get(key);
    if (socket?.pass === undefined) this.library.close(descriptor);
    else socket.pass(descriptor);
  }

  /** Accepts for another process of this program, which cannot; else closes. */
  adopt(descriptor: number): void {
    const key = keyOfDescriptor(this.library, descriptor);
    for (const [socket, own] of this.#listening) {
      if (own === key && socket.adopt) return socket.adopt(descriptor);
    }
    this.library.close(descriptor);
  }

  /** The processes that were helped out can. */
  letGo(): void {
    for (const socket of this.#listening.keys()) socket.letGo?.();
  }

  /** Another process listens with these from now on. */
  handOver(choice: KeptSocketChoice = ALL): void {
    for (const [socket, key] of [...this.#listening]) {
      if (!choice(key)) continue;
      this.#listening.delete(socket);
      this.sharing?.closed(key);
      socket.handedOver();
    }
  }

  /** Two descriptors of one socket would listen twice. */
  #isKnown(key: string, descriptor: number): boolean {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return false;
    if (key.startsWith("unix ")) return true;
    const cookie = socketCookie(this.library, descriptor);
    return waiting.some((one) =>
      socketCookie(this.library, one.descriptor) === cookie
    );
  }
}

let shared: SocketStore | undefined;

/**
 * The store of this process; `undefined` when sockets are the platform's, which
 * neither shows their descriptors nor accepts any.
 */
export function socketStore(): SocketStore | undefined {
  if (shared !== undefined) return shared;
  const library = openLibc();
  if (library === undefined || sharedPoller() === undefined) return undefined;
  return shared = new SocketStore(library);
}

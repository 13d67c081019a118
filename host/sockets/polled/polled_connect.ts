/**
 * Connects sockets of the C library.
 *
 * @module
 */

import { hostPort } from "../deno_socket.ts";
import { lastError, type LibC, openLibc } from "../libc/libc.ts";
import {
  PolledSocket,
  type SocketEnds,
  STREAM_INTEREST,
} from "./polled_socket.ts";
import { type Polled, type Poller, sharedPoller } from "./poller.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
} from "../libc/socket_address.ts";
import { StreamDescriptor } from "./stream_descriptor.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import { encodeUnixAddress } from "../libc/unix_address.ts";

const SOCK_STREAM = 1;
const SOCK_FLAGS = 0x80800; // SOCK_CLOEXEC, SOCK_NONBLOCK

/**
 * Connects to an IP address and port.
 *
 * @param signal Gives it up; its reason is what this rejects with.
 * @returns `undefined` where only the platform can: the host is a name or has a
 *   zone, or there is no C library to ask.
 * @throws A system error with its `code`.
 */
export function connectPolledTcp(
  address: DatagramAddress,
  signal: AbortSignal,
  poller: Poller | undefined = sharedPoller(),
): Promise<PolledSocket> | undefined {
  const name = encodeSocketAddress(address);
  const remoteAddress = hostPort(address.hostname, address.port);
  const ends = { remoteAddress, localAddress: "" };
  return name && connect({ name, ends }, signal, poller);
}

/** The same with a path. */
export function connectPolledUnix(
  path: string,
  signal: AbortSignal,
  poller: Poller | undefined = sharedPoller(),
): Promise<PolledSocket> | undefined {
  const name = encodeUnixAddress(path);
  const ends = { remoteAddress: path, localAddress: "unix" };
  return name && connect({ name, ends }, signal, poller);
}

function connect(
  { name, ends }: Omit<Attempt, "descriptor">,
  signal: AbortSignal,
  poller: Poller | undefined,
): Promise<PolledSocket> | undefined {
  const library = openLibc();
  if (library === undefined || poller === undefined) return undefined;
  if (signal.aborted) return Promise.reject(signal.reason);
  const descriptor = library.socket(name[0]!, SOCK_STREAM | SOCK_FLAGS, 0);
  if (descriptor < 0) return Promise.reject(systemError(lastError(library)));
  return new Connecting(library, poller, { descriptor, name, ends }).run(
    signal,
  );
}

/** What a connection is made of. */
interface Attempt {
  readonly descriptor: number;
  readonly name: Uint8Array<ArrayBuffer>;
  readonly ends: SocketEnds;
}

/** A connection that is being made. */
class Connecting implements Polled {
  readonly #library: LibC;
  readonly #poller: Poller;
  readonly #attempt: Attempt;
  /** What was told of it while it was under way. */
  #noticed = 0;
  #settle: ((error?: unknown) => void) | undefined;

  constructor(library: LibC, poller: Poller, attempt: Attempt) {
    this.#library = library;
    this.#poller = poller;
    this.#attempt = attempt;
  }

  run(signal: AbortSignal): Promise<PolledSocket> {
    // Asked twice: on this machine it is there by then, and a turn is saved.
    const first = this.#ask();
    const state = first === Errno.EINPROGRESS ? this.#ask() : first;
    if (state === "connected") return Promise.resolve(this.#socket());
    if (!isUnderWay(state)) return Promise.reject(this.#failed(state));
    return this.#wait(signal);
  }

  onReady(ready: number): void {
    this.#noticed |= ready;
    const state = this.#ask();
    if (state === "connected") this.#settle?.();
    else if (!isUnderWay(state)) this.#settle?.(systemError(state));
  }

  #wait(signal: AbortSignal): Promise<PolledSocket> {
    const { descriptor } = this.#attempt;
    if (!this.#poller.add(descriptor, STREAM_INTEREST, this)) {
      this.#library.close(descriptor);
      return Promise.reject(cannotWait());
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#settle?.(signal.reason);
      signal.addEventListener("abort", onAbort);
      this.#settle = (error) => {
        this.#settle = undefined;
        signal.removeEventListener("abort", onAbort);
        if (error === undefined) return resolve(this.#socket());
        void this.#poller.close(descriptor);
        reject(error);
      };
    });
  }

  /** Tells the kernel to connect, or asks how far it has come. */
  #ask(): "connected" | number {
    const { descriptor, name } = this.#attempt;
    const { connect } = this.#library;
    if (connect(descriptor, name, name.length) === 0) return "connected";
    const number = lastError(this.#library);
    return number === Errno.EISCONN ? "connected" : number;
  }

  #socket(): PolledSocket {
    const { descriptor, ends } = this.#attempt;
    const isTcp = ends.localAddress === "";
    const stream = new StreamDescriptor(
      this.#library,
      this.#poller,
      descriptor,
      { isTcp, mayRead: true },
    );
    // An end may have come together with the connection; it is told once.
    stream.noticed(this.#noticed);
    return new PolledSocket(stream, ends);
  }

  #failed(number: number): Error {
    const { descriptor } = this.#attempt;
    this.#library.close(descriptor);
    return systemError(number);
  }
}

function isUnderWay(state: number): boolean {
  return state === Errno.EINPROGRESS || state === Errno.EALREADY ||
    state === Errno.EINTR;
}

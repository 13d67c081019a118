/**
 * Connects sockets of the C library.
 *
 * @module
 */

import { INTERNAL_ERROR } from "../../platform/errors/internal_errors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { lastError, type LibC, openLibc } from "../libc/libc.ts";
import { type Pollable, type Poller, sharedPoller } from "../poll/poller.ts";
import {
  type DatagramAddress,
  SOCKET_ADDRESS_BYTES,
  writeSocketAddress,
} from "../libc/socket_address.ts";
import { ROOM_INTEREST, StreamDescriptor } from "./stream_descriptor.ts";
import {
  IPPROTO_TCP,
  setSocketOption,
  SO_ERROR,
  socketOption,
  SOL_SOCKET,
} from "../libc/socket_option.ts";
import { openSocket, SOCK_STREAM } from "../libc/sockets.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import { encodeUnixAddress } from "../libc/unix_address.ts";

const TCP_MAXSEG = 2;

/** One that is there already, as on this machine, or one that is under way. */
export type StartedConnection = StreamDescriptor | Connecting;

/**
 * Begins to connect to an IP address and port.
 *
 * @returns `undefined` where only the platform can: the host is a name or has a
 *   zone, or there is no C library. The caller has to wait for one that is
 *   under way.
 * @throws A system error with its `code`.
 */
export function startPolledTcp(
  address: DatagramAddress,
  poller: Poller | undefined = sharedPoller(),
  segmentBytesMax?: number,
): StartedConnection | undefined {
  const bytes = writeSocketAddress(shared, address);
  if (bytes === undefined) return undefined;
  const remoteAddress = hostPort(address.hostname, address.port);
  const ends = { remoteAddress };
  return start({ name: shared, bytes, ends, segmentBytesMax }, poller);
}

/** Each address is used at once, and written again by a connect that waits. */
const shared = new Uint8Array(SOCKET_ADDRESS_BYTES);

/**
 * Connects to an IP address and port.
 *
 * @param signal Gives it up; its reason is what this rejects with.
 * @returns `undefined` as {@linkcode startPolledTcp}.
 * @throws A system error with its `code`.
 */
export function connectPolledTcp(
  address: DatagramAddress,
  signal: AbortSignal,
  poller: Poller | undefined = sharedPoller(),
  segmentBytesMax?: number,
): Promise<StreamDescriptor> | undefined {
  return finish(
    signal,
    () => startPolledTcp(address, poller, segmentBytesMax),
  );
}

/** The same with a path. */
export function connectPolledUnix(
  path: string,
  signal: AbortSignal,
  poller: Poller | undefined = sharedPoller(),
): Promise<StreamDescriptor> | undefined {
  const name = encodeUnixAddress(path);
  if (name === undefined) return undefined;
  const ends = { remoteAddress: path, localAddress: "unix" };
  const destination = { name, bytes: name.length, ends };
  return finish(signal, () => start(destination, poller));
}

function finish(
  signal: AbortSignal,
  start: () => StartedConnection | undefined,
): Promise<StreamDescriptor> | undefined {
  if (signal.aborted) return Promise.reject(signal.reason);
  try {
    const started = start();
    return started instanceof Connecting
      ? started.wait(signal)
      : started && Promise.resolve(started);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** How the two ends are called; over TCP the kernel knows ours. */
interface Ends {
  readonly remoteAddress: string;
  readonly localAddress?: string;
}

/** The destination. */
interface Destination {
  readonly name: Uint8Array<ArrayBuffer>;
  /** The count. */
  readonly bytes: number;
  readonly ends: Ends;
  /** Neither end sends larger segments; absent: as large as the line allows. */
  readonly segmentBytesMax?: number | undefined;
}

function start(
  destination: Destination,
  poller: Poller | undefined,
): StartedConnection | undefined {
  const library = openLibc();
  if (library === undefined || poller === undefined) return undefined;
  const { name, bytes } = destination;
  const descriptor = openSocket(library, name[0]!, SOCK_STREAM);
  limitSegments(library, descriptor, destination.segmentBytesMax);
  // Called twice: on this machine it is connected by then, which saves a turn.
  const first = ask(library, descriptor, name, bytes);
  const state = first === Errno.EINPROGRESS
    ? ask(library, descriptor, name, bytes)
    : first;
  if (state === CONNECTED) {
    return streamOf(library, poller, descriptor, destination.ends);
  }
  if (isUnderWay(state)) {
    return new Connecting(library, poller, descriptor, destination);
  }
  library.close(descriptor);
  throw systemError(state);
}

/** Set before the SYN, which tells the peer (RFC 9293 §3.7.1). */
function limitSegments(
  library: LibC,
  descriptor: number,
  bytesMax: number | undefined,
): void {
  if (bytesMax === undefined) return;
  setSocketOption(library, descriptor, IPPROTO_TCP, TCP_MAXSEG, bytesMax);
}

/** No error has this number. */
const CONNECTED = 0;

/** Makes the kernel connect, or asks for the progress (connect(2)). */
function ask(
  library: LibC,
  descriptor: number,
  name: Uint8Array<ArrayBuffer>,
  bytes: number,
): number {
  if (library.connect(descriptor, name, bytes) === 0) return CONNECTED;
  const number = lastError(library);
  return number === Errno.EISCONN ? CONNECTED : number;
}

/** The poller has yet to look, and will report readable bytes. */
function streamOf(
  library: LibC,
  poller: Poller,
  descriptor: number,
  ends: Ends,
  noticed = 0,
): StreamDescriptor {
  const isTcp = ends.localAddress === undefined;
  const facts = { ...ends, isTcp, mayRead: false };
  const stream = new StreamDescriptor(library, poller, descriptor, facts);
  // An end may have come together with the connection; it is reported once.
  stream.onReady(noticed);
  return stream;
}

/** A connection that is being made. */
export class Connecting implements Pollable {
  readonly #name: Uint8Array<ArrayBuffer>;
  readonly #ends: Ends;
  /** The readiness reported while it was under way. */
  #noticed = 0;
  #settle: ((error?: unknown) => void) | undefined;

  constructor(
    private readonly library: LibC,
    private readonly poller: Poller,
    private readonly descriptor: number,
    { name, bytes, ends }: Destination,
  ) {
    this.#name = name.slice(0, bytes);
    this.#ends = ends;
  }

  /**
   * Waits for it; to be called once, in the turn in which it began.
   *
   * @param signal Gives it up; its reason is what this rejects with.
   * @throws A system error with its `code`.
   */
  wait(signal: AbortSignal): Promise<StreamDescriptor> {
    if (!this.poller.add(this.descriptor, ROOM_INTEREST, this)) {
      this.library.close(this.descriptor);
      return Promise.reject(cannotWait());
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#settle?.(signal.reason);
      signal.addEventListener("abort", onAbort);
      this.#settle = (error) => {
        this.#settle = undefined;
        signal.removeEventListener("abort", onAbort);
        if (error === undefined) return resolve(this.#stream());
        void this.poller.close(this.descriptor);
        reject(error);
      };
    });
  }

  onReady(ready: number): void {
    this.#noticed |= ready;
    const name = this.#name;
    const asked = ask(this.library, this.descriptor, name, name.length);
    // A firewall of this machine that rejects leaves the socket connecting, and
    // the refusal beside it: the SYN would be sent again for two minutes.
    const state = asked === Errno.EALREADY ? this.#refusal : asked;
    if (state === CONNECTED) this.#settle?.();
    else if (!isUnderWay(state)) this.#settle?.(systemError(state));
  }

  onFault(): void {
    this.#settle?.(new Error(INTERNAL_ERROR));
  }

  /** The answer to the SYN (ICMP), or that it is under way. */
  get #refusal(): number {
    return socketOption(
      this.library,
      this.descriptor,
      SOL_SOCKET,
      SO_ERROR,
    ) || Errno.EALREADY;
  }

  #stream(): StreamDescriptor {
    return streamOf(
      this.library,
      this.poller,
      this.descriptor,
      this.#ends,
      this.#noticed,
    );
  }
}

function isUnderWay(state: number): boolean {
  return state === Errno.EINPROGRESS || state === Errno.EALREADY ||
    state === Errno.EINTR;
}

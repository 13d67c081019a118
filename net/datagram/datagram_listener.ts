/**
 * One UDP socket that many callers send to, as one datagram conduit for each.
 *
 * UDP has no connections: a caller is an address that datagrams come from, and
 * is gone when it was silent for a while.
 *
 * @module
 */

import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import {
  type DatagramAddress,
  type DatagramSocket,
  openDatagramSocket,
  senderKey,
  senderOf,
} from "./datagram_socket.ts";
import { hostPort } from "../../proto/peer/host_port.ts";

/** Any host that can send to the port can make up callers; these are enough. */
export const FLOWS_MAX = 1024;

/** Datagrams that wait for a flow's dial; more are dropped, as by a network. */
export const LISTENER_WAITING_DATAGRAMS_MAX = 64;

/** And their bytes, so that many made-up callers cannot take the memory. */
export const LISTENER_WAITING_BYTES_MAX = 64 * 1024;

/** The longest pause before a socket that has failed is opened again. */
export const REOPEN_MS_MAX = 10_000;

/** The address, and the handler of callers. */
export interface DatagramListenerOptions {
  readonly hostname: string;
  readonly port: number;
  readonly timers: Timers;
  /** A flow ends after this time without a datagram in either direction. */
  readonly idleTimeoutMs: number;
  /** The port cannot be read, or opened again; a line each time. */
  readonly onProblem?: (line: string) => void;
  /** Tests have others. */
  readonly openSocket?: typeof openDatagramSocket;
  /** A new caller; its datagrams wait until its owner attaches. */
  readonly onFlow: (flow: DatagramFlow, remoteAddress: string) => void;
}

/** One caller's datagrams, and the answers to it. */
export interface DatagramFlow extends Conduit {
  /**
   * Takes the first waiting datagram, to send it ahead.
   *
   * @returns `undefined` when it is longer than `bytesMax`, or taken already.
   */
  takeFirst(bytesMax: number): Uint8Array | undefined;
}

/** A socket that is open. */
export interface DatagramListener {
  /** `ip:port`, as bound. */
  readonly address: string;
  close(): void;
}

/**
 * Opens the socket.
 *
 * @throws A system error, such as one with code `EADDRINUSE`.
 */
export async function listenDatagrams(
  options: DatagramListenerOptions,
): Promise<DatagramListener> {
  const port = new DatagramPort(options);
  await port.open();
  return port;
}

/** The port, even after its socket is closed. */
class DatagramPort implements DatagramListener {
  readonly #flows = new Map<string, Flow>();
  readonly #backoff = new Backoff({
    capMs: REOPEN_MS_MAX,
    random: Math.random,
  });
  #at: DatagramAddress;
  #socket: DatagramSocket | undefined;
  #openedMs = 0;
  #retry: Timer | undefined;
  #isClosed = false;

  constructor(private readonly options: DatagramListenerOptions) {
    this.#at = { hostname: options.hostname, port: options.port };
  }

  get address(): string {
    return hostPort(this.#at.hostname, this.#at.port);
  }

  async open(): Promise<void> {
    const { openSocket = openDatagramSocket, timers } = this.options;
    const socket = await openSocket(this.#at, { isServer: true });
    if (this.#isClosed) return socket.close();
    this.#socket = socket;
    this.#at = socket.address;
    this.#openedMs = timers.now();
    socket.listen({
      onDatagram: (bytes, hostname, port, local) =>
        this.#receive(socket, bytes, senderOf(hostname, port, local)),
      onError: (error) => this.#onBroken(socket, error),
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#endAll("closed");
    this.#socket?.close();
  }

  #receive(
    socket: DatagramSocket,
    bytes: Uint8Array,
    caller: DatagramAddress,
  ): void {
    const { hostname, port, local } = caller;
    const key = senderKey(hostname, port, local);
    const known = this.#flows.get(key);
    if (known !== undefined) return known.receive(bytes);
    if (this.#flows.size >= FLOWS_MAX) return;
    const flow = new Flow(socket, caller, this.options, () => {
      this.#flows.delete(key);
    });
    this.#flows.set(key, flow);
    flow.receive(bytes);
    this.options.onFlow(flow, hostPort(hostname, port));
  }

  /** It is opened again; soon only if it was well for long enough. */
  #onBroken(socket: DatagramSocket, { message }: Error): void {
    if (this.#socket !== socket || this.#isClosed) return;
    this.#socket = undefined;
    this.options.onProblem?.(
      `${this.address} is heard no more: ${message}; opening it again`,
    );
    this.#endAll("its port has failed");
    const livedMs = this.options.timers.now() - this.#openedMs;
    if (livedMs > REOPEN_MS_MAX) this.#backoff.reset();
    socket.close(() => this.#openLater());
  }

  #openLater(): void {
    if (this.#isClosed) return;
    const { timers, onProblem } = this.options;
    this.#retry = timers.after(this.#backoff.nextMs(), () => {
      this.open().catch((error) => {
        onProblem?.(`Cannot listen on ${this.address}: ${error.message}`);
        this.#openLater();
      });
    });
  }

  #endAll(reason: string): void {
    for (const flow of [...this.#flows.values()]) flow.reset(reason);
  }
}

class Flow implements DatagramFlow {
  readonly datagrams = true;
  #events: ConduitEvents | undefined;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lastHeardMs: number;
  #timer: Timer | undefined;
  #end: ConduitEnd | undefined;
  #isEndTold = false;

  constructor(
    private readonly socket: DatagramSocket,
    private readonly caller: DatagramAddress,
    private readonly options: DatagramListenerOptions,
    private readonly onOver: () => void,
  ) {
    this.#lastHeardMs = options.timers.now();
    this.#arm();
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    const waiting = this.#waiting;
    this.#waiting = [];
    // Not inside the call: the owner is not ready for events yet.
    queueMicrotask(() => {
      waiting.forEach((bytes) => this.receive(bytes));
      this.#reportEnd();
    });
  }

  takeFirst(bytesMax: number): Uint8Array | undefined {
    const first = this.#waiting[0];
    if (first === undefined || first.length > bytesMax) return undefined;
    this.#waiting.shift();
    this.#waitingBytes -= first.length;
    return first;
  }

  /** A datagram of this caller. */
  receive(bytes: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#lastHeardMs = this.options.timers.now();
    if (this.#events !== undefined) {
      this.#events.onData(bytes);
    } else if (
      this.#waiting.length < LISTENER_WAITING_DATAGRAMS_MAX &&
      this.#waitingBytes + bytes.length <= LISTENER_WAITING_BYTES_MAX
    ) {
      this.#waiting.push(new Uint8Array(bytes));
      this.#waitingBytes += bytes.length;
    }
  }

  write(chunk: Uint8Array): number {
    if (this.#end !== undefined) return chunk.length;
    this.#lastHeardMs = this.options.timers.now();
    this.socket.send(chunk, this.caller);
    return chunk.length;
  }

  /** UDP has no packet for an end. */
  end(): void {
    this.#close({ kind: "clean" });
  }

  reset(reason: string): void {
    this.#close({ kind: "reset", reason });
  }

  /** UDP has no backpressure: a reader that is behind drops. */
  consumed(): void {}

  #arm(): void {
    const { timers, idleTimeoutMs } = this.options;
    const silentMs = timers.now() - this.#lastHeardMs;
    this.#timer = timers.after(Math.max(0, idleTimeoutMs - silentMs), () => {
      if (timers.now() - this.#lastHeardMs < idleTimeoutMs) this.#arm();
      else {
        this.reset(`no datagram in either direction for ${idleTimeoutMs} ms`);
      }
    });
  }

  #close(end: ConduitEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#waiting = [];
    this.#timer?.cancel();
    this.onOver();
    queueMicrotask(() => this.#reportEnd());
  }

  /** Once the owner is attached; not inside one of its own calls. */
  #reportEnd(): void {
    if (this.#end === undefined || this.#events === undefined) return;
    if (this.#isEndTold) return;
    this.#isEndTold = true;
    // `clean` may come only after `onEnd`.
    if (this.#end.kind === "clean") this.#events.onEnd();
    this.#events.onClose(this.#end);
  }
}

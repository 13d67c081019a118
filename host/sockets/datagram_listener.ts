/**
 * One UDP socket that many callers send to, as one datagram conduit for each.
 *
 * UDP has no connections: a caller is whoever sends from an address, and is
 * gone when nothing was said for a while.
 *
 * @module
 */

import { createSocket, type Socket } from "node:dgram";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { hostPort } from "./deno_socket.ts";

/** Anybody who can send to the port can make up callers; these are enough. */
export const FLOWS_MAX = 1024;

/** Datagrams that wait for a flow's dial; more are dropped, as by a network. */
export const WAITING_DATAGRAMS_MAX = 64;

/** Where to listen, and what to do with callers. */
export interface DatagramListenerOptions {
  readonly hostname: string;
  readonly port: number;
  readonly timers: Timers;
  /** After so long without a datagram in either direction a flow is over. */
  readonly idleTimeoutMs: number;
  /** A new caller; its first datagram waits until somebody attaches. */
  readonly onFlow: (flow: Conduit, remoteAddress: string) => void;
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
export function listenDatagrams(
  options: DatagramListenerOptions,
): Promise<DatagramListener> {
  const socket = createSocket(options.hostname.includes(":") ? "udp6" : "udp4");
  const flows = new Map<string, Flow>();
  socket.on("message", (octets, { address, port }) => {
    const remote = hostPort(address, port);
    let flow = flows.get(remote);
    if (flow === undefined) {
      if (flows.size >= FLOWS_MAX) return;
      flow = new Flow(socket, address, port, options, () => {
        flows.delete(remote);
      });
      flows.set(remote, flow);
      options.onFlow(flow, remote);
    }
    flow.hear(octets);
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(options.port, options.hostname, () => {
      socket.off("error", reject);
      // An ICMP refusal of one caller must not end the others' flows.
      socket.on("error", () => {});
      const { address, port } = socket.address();
      resolve({
        address: hostPort(address, port),
        close() {
          for (const flow of [...flows.values()]) flow.reset("closed");
          socket.close();
        },
      });
    });
  });
}

class Flow implements Conduit {
  readonly datagrams = true;
  readonly #socket: Socket;
  readonly #address: string;
  readonly #port: number;
  readonly #options: DatagramListenerOptions;
  readonly #onOver: () => void;
  #events: ConduitEvents | undefined;
  #waiting: Uint8Array[] = [];
  #lastHeardMs: number;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(
    socket: Socket,
    address: string,
    port: number,
    options: DatagramListenerOptions,
    onOver: () => void,
  ) {
    this.#socket = socket;
    this.#address = address;
    this.#port = port;
    this.#options = options;
    this.#onOver = onOver;
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
    // Not inside the call: whoever attaches is not ready for events yet.
    queueMicrotask(() => waiting.forEach((octets) => this.hear(octets)));
  }

  /** A datagram of this caller. */
  hear(octets: Uint8Array): void {
    if (this.#isClosed) return;
    this.#lastHeardMs = this.#options.timers.now();
    if (this.#events !== undefined) {
      this.#events.onData(octets);
    } else if (this.#waiting.length < WAITING_DATAGRAMS_MAX) {
      this.#waiting.push(new Uint8Array(octets));
    }
  }

  write(chunk: Uint8Array): number {
    if (this.#isClosed) return chunk.length;
    this.#lastHeardMs = this.#options.timers.now();
    // Copied, because the socket keeps it until the system has taken it.
    const copy = new Uint8Array(chunk);
    this.#socket.send(copy, this.#port, this.#address, () => {});
    return chunk.length;
  }

  /** Nobody tells a UDP caller that there will be no more. */
  end(): void {
    this.#close({ kind: "clean" });
  }

  reset(reason: string): void {
    this.#close({ kind: "reset", reason });
  }

  /** UDP has no backpressure: a reader that is behind drops. */
  consumed(): void {}

  #arm(): void {
    const { timers, idleTimeoutMs } = this.#options;
    const silentMs = timers.now() - this.#lastHeardMs;
    this.#timer = timers.after(Math.max(0, idleTimeoutMs - silentMs), () => {
      if (timers.now() - this.#lastHeardMs < idleTimeoutMs) this.#arm();
      else this.#close({ kind: "clean" });
    });
  }

  #close(end: ConduitEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#onOver();
    // `clean` may come only after `onEnd`; both wait for the caller to return.
    queueMicrotask(() => {
      if (end.kind === "clean") this.#events?.onEnd();
      this.#events?.onClose(end);
    });
  }
}

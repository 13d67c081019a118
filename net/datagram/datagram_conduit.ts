/**
 * A UDP flow to one address as a {@linkcode Conduit}: each `write` and each
 * `onData` is one datagram.
 *
 * UDP has no end, so the flow ends after a silence, or when its target refuses
 * (ICMP), if the system reports that. It has no backpressure either: when the
 * reader is behind, datagrams are dropped, as a full socket buffer would.
 *
 * The sender of each datagram is checked here: a connected UDP socket would do
 * that, but the platform has none, and only some systems let us connect one.
 *
 * @module
 */

import { canonicalIp } from "../../proto/peer/ip_address.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type Conduit,
  type ConduitEnd,
  type ConduitEvents,
  REFUSAL,
} from "../../proto/transfer/conduit.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import {
  KERNEL_BUFFER_BYTES,
  SESSION_BUFFER_BYTES,
} from "./datagram_descriptor.ts";
import { type DatagramSocket, openDatagramSocket } from "./datagram_socket.ts";

/** Delivered bytes that may wait for `consumed` before datagrams are dropped. */
export const UNCONSUMED_BYTES_MAX = 256 * 1024;

/** How long answers are still waited for after our side has ended. */
export const AFTER_END_IDLE_MS = 5_000;

/** The destination of a flow, and its longest silence. */
export interface DatagramConduitOptions {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
  readonly timers: Timers;
  /**
   * A flow ends after this time without a datagram in either direction.
   * Infinity: the owner ends it.
   */
  readonly idleTimeoutMs: number;
  /** One of thousands: its kernel buffers are smaller. */
  readonly isSession?: boolean;
}

export class DatagramConduit implements Conduit {
  readonly datagrams = true;
  readonly #peer: string;
  readonly #target: { readonly hostname: string; readonly port: number };
  /** The peer's address as the platform writes it, once it was seen. */
  #peerAsWritten: string;
  #events: ConduitEvents | undefined;
  #unconsumed = 0;
  #lastHeardMs: number;
  #timer: Timer | undefined;
  #weEnded = false;
  #isClosed = false;
  #dropped = 0;

  private constructor(
    private readonly socket: DatagramSocket,
    private readonly options: DatagramConduitOptions,
  ) {
    this.#peer = canonicalIp(options.address);
    this.#target = { hostname: options.address, port: options.port };
    this.#peerAsWritten = options.address;
    this.#lastHeardMs = options.timers.now();
  }

  /**
   * Opens a socket of the address's family on a port of the system's choice.
   *
   * @throws A system error, such as one with code `EMFILE`.
   */
  static async open(options: DatagramConduitOptions): Promise<DatagramConduit> {
    const { address, port, isSession } = options;
    const hostname = address.includes(":") ? "::" : "0.0.0.0";
    const socket = await openDatagramSocket({ hostname, port: 0 }, {
      peer: { hostname: address, port },
      kernelBytes: isSession ? SESSION_BUFFER_BYTES : KERNEL_BUFFER_BYTES,
    });
    return new DatagramConduit(socket, options);
  }

  /** Datagrams that were dropped because the reader was behind. */
  get droppedDatagrams(): number {
    return this.#dropped;
  }

  /** Whether later writes are lost. */
  get isOver(): boolean {
    return this.#isClosed;
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    this.socket.listen({
      onDatagram: (bytes, hostname, port) =>
        this.#receive(bytes, hostname, port),
      onError: (error) => this.#lose(error),
    });
    this.#arm();
  }

  write(chunk: Uint8Array): number {
    if (this.#weEnded && !this.#isClosed) {
      throw new TypeError("Cannot write to a conduit after its end");
    }
    if (this.#isClosed) return chunk.length;
    this.#touch();
    this.socket.send(chunk, this.#target);
    return chunk.length;
  }

  end(): void {
    if (this.#weEnded) return;
    this.#weEnded = true;
    this.#arm();
  }

  reset(reason: string, kind: "reset" | "lost" = "reset"): void {
    this.#close({ kind, reason });
  }

  consumed(bytes: number): void {
    this.#unconsumed -= bytes;
  }

  /** Frees a conduit that was never attached to. */
  discard(): void {
    this.socket.close();
  }

  #receive(bytes: Uint8Array, hostname: string, port: number): void {
    if (this.#isClosed) return;
    // Any host can send to our port; only the target's datagrams count.
    if (port !== this.#target.port || !this.#isPeer(hostname)) return;
    this.#touch();
    if (this.#unconsumed + bytes.length > UNCONSUMED_BYTES_MAX) {
      this.#dropped++;
      return;
    }
    this.#unconsumed += bytes.length;
    this.#events!.onData(bytes);
  }

  /** There is more than one way to write an IPv6 address. */
  #isPeer(hostname: string): boolean {
    if (hostname === this.#peerAsWritten) return true;
    if (canonicalIp(hostname) !== this.#peer) return false;
    this.#peerAsWritten = hostname;
    return true;
  }

  /** The timer is not moved for every datagram; it looks when it fires. */
  #touch(): void {
    this.#lastHeardMs = this.options.timers.now();
  }

  get #idleMs(): number {
    const { idleTimeoutMs } = this.options;
    return this.#weEnded
      ? Math.min(idleTimeoutMs, AFTER_END_IDLE_MS)
      : idleTimeoutMs;
  }

  #arm(): void {
    if (this.#isClosed || this.#events === undefined) return;
    if (this.#idleMs === Infinity) return;
    const { timers } = this.options;
    this.#timer?.cancel();
    const silentMs = timers.now() - this.#lastHeardMs;
    this.#timer = timers.after(Math.max(0, this.#idleMs - silentMs), () => {
      if (timers.now() - this.#lastHeardMs < this.#idleMs) this.#arm();
      else this.#onIdle();
    });
  }

  #onIdle(): void {
    if (this.#weEnded) {
      this.#events!.onEnd();
      return this.#close({ kind: "clean" });
    }
    this.#close({
      kind: "reset",
      reason: `no datagram in either direction for ${this.#idleMs} ms`,
    });
  }

  #lose(error: Error): void {
    const isRefused = codeOf(error) === "ECONNREFUSED";
    this.#close(
      isRefused ? REFUSAL : { kind: "lost", reason: error.message },
    );
  }

  #close(end: ConduitEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.socket.close(() => this.#events?.onClose(end));
  }
}

/**
 * One client's datagrams to one backend, and what it answers.
 *
 * ```
 * dialing ──► open ──► leaving ──► over
 *    └──────────┴──────────────────►
 * ```
 *
 * While its backend is dialed, some datagrams wait. A session whose backend
 * goes is leaving: it takes nothing more from its client, and answers under way
 * still arrive. A session whose backend refuses is over, and its owner sends
 * the unanswered datagram elsewhere. The owner also decides when a session has
 * been silent too long.
 *
 * @module
 */

import type { BegunDial } from "../../../platform/conduits/dial_reports.ts";
import { dialSpan, type Span } from "../../../platform/tracing/tracing.ts";
import type { ConnectionFacts } from "../../../platform/log/connection_log.ts";
import { newConnectionId } from "../../../platform/process/connection_ids.ts";
import { DatagramConduit } from "../../../net/datagram/datagram_conduit.ts";
import type {
  DatagramAddress,
  DatagramSocket,
} from "../../../net/datagram/datagram_socket.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { abandon } from "../../../proto/link/dial_handler.ts";
import {
  type Conduit,
  type ConduitEnd,
  type ConduitEvents,
  isRefusal,
} from "../../../proto/transfer/conduit.ts";
import { blame, dialBackend } from "./backend_dialer.ts";
import type { Backend } from "../balancer/backend.ts";
import { IdleLink } from "./session_lists.ts";
import { UnansweredDatagram } from "./unanswered_datagram.ts";
import type { UdpSessions } from "./udp_sessions.ts";

/** Datagrams that wait for a dial; more are dropped, as by a network. */
export const SESSION_WAITING_DATAGRAMS_MAX = 64;

/** And their bytes: of the longest datagrams there is room for one. */
export const SESSION_WAITING_BYTES_MAX = 64 * 1024;

/** A socket for clients, and their sessions. */
export interface SessionHome {
  readonly socket: DatagramSocket;
  /** By `senderKey`. */
  readonly sessions: Map<string, UdpSession>;
}

export class UdpSession extends IdleLink implements ConduitEvents, BegunDial {
  readonly id = newConnectionId();
  readonly askedMs: number;
  /** See `LiveDial`. */
  place?: number;
  /** Until it has a backend. */
  span: Span | undefined;
  #state: "dialing" | "open" | "leaving" | "over" = "dialing";
  #backend: Backend | undefined;
  #far: Conduit | undefined;
  /**
   * The same, if it is a socket of this machine: only such a socket reports
   * refusals.
   */
  #socket: DatagramConduit | undefined;
  #dialing: AbortController | undefined;
  #waiting: Uint8Array[] | undefined = [];
  #hasAnswered = false;
  readonly #kept: UnansweredDatagram;

  /** @param refusers Refused the datagram with which it begins. */
  constructor(
    readonly client: DatagramAddress,
    readonly home: SessionHome,
    private readonly owner: UdpSessions,
    private readonly refusers: ReadonlySet<Backend> = NOBODY,
  ) {
    super();
    this.askedMs = owner.context.timers.now();
    this.#kept = new UnansweredDatagram(owner.kept);
  }

  /** The one that it has, or that is being dialed for it. */
  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** Whether it only waits for answers that are under way. */
  get isLeaving(): boolean {
    return this.#state === "leaving";
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** For the log. */
  get facts(): ConnectionFacts {
    const { hostname, port } = this.client;
    const known = {
      id: this.id,
      service: this.owner.port.key,
      from: hostPort(hostname, port),
    };
    if (this.#backend === undefined) return known;
    const address = this.#backend.key;
    return { ...known, target: { protocol: "udp", address } };
  }

  /** Finds a backend; called once. */
  async start(): Promise<void> {
    const { port, context } = this.owner;
    this.#dialing = new AbortController();
    this.span = dialSpan("serve client", this.facts);
    context.reports.began(this);
    const found = await dialBackend(port, context, {
      protocol: "udp",
      clientHost: this.client.hostname,
      id: this.id,
      trace: this.span?.context,
      signal: this.#dialing.signal,
      without: this.refusers,
      onTry: (backend) => this.#backend = backend,
    });
    this.#dialing = undefined;
    context.reports.over(this);
    if (this.#state === "over") {
      if (found.kind === "backend") {
        found.backend.closed();
        abandon(found.conduit, OVER.message);
      }
      context.reports.failed(OVER, this);
      this.owner.onClosed();
    } else if (found.kind === "backend") this.#open(found.conduit);
    else {
      this.#backend = undefined;
      this.owner.onRefused(this, found.kind);
    }
  }

  /**
   * A datagram of the client; it is copied.
   *
   * @returns Whether this session will do anything for it.
   */
  receive(bytes: Uint8Array): boolean {
    if (this.#far !== undefined) return this.#send(bytes);
    const waiting = this.#waiting;
    if (waiting === undefined) return false;
    const isFull = waiting.length >= SESSION_WAITING_DATAGRAMS_MAX ||
      lengthOf(waiting) + bytes.length > SESSION_WAITING_BYTES_MAX;
    if (isFull) this.owner.port.counts.datagramsDropped++;
    else waiting.push(bytes.slice());
    return true;
  }

  /**
   * Its backend goes: nothing more is taken from the client.
   *
   * @returns Whether answers are still to be waited for.
   */
  leave(): boolean {
    if (this.#state !== "open") return false;
    this.#state = "leaving";
    this.#backend!.closed();
    return true;
  }

  /** Datagrams that were not sent yet; the caller owns them from now on. */
  takeWaiting(): readonly Uint8Array[] {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting;
  }

  /** Ends it at the request of its user, while it has no backend yet. */
  kill(reason: string): void {
    this.owner.onLost(this);
    this.end(reason);
  }

  /** Ends it in any state. */
  end(reason: string): void {
    const was = this.#state;
    if (was === "over") return;
    this.#state = "over";
    if (was === "open") this.#backend!.closed();
    if (this.#far !== undefined) return this.#far.reset(reason);
    if (this.#dialing !== undefined) return this.#dialing.abort();
    this.owner.onClosed();
  }

  onData(bytes: Uint8Array): void {
    this.#far!.consumed(bytes.length);
    if (this.#state === "over") return;
    const { port } = this.owner;
    if (!this.#hasAnswered) this.#backend!.succeeded();
    this.#hasAnswered = true;
    this.#kept.forget();
    this.#backend!.bytesReceived += bytes.length;
    port.counts.bytesToClients += bytes.length;
    this.home.socket.send(bytes, this.client);
    this.owner.onAnswer(this);
  }

  /** Datagrams are taken or dropped. */
  onWritable(): void {}

  /** The far end of the tunnel has closed it; UDP itself has no end. */
  onEnd(): void {
    this.#far!.reset("the other end is over");
  }

  onClose(end: ConduitEnd): void {
    const isRefused = isRefusal(end);
    const { port, context } = this.owner;
    const backend = this.#backend!;
    if (
      isRefused ||
      (end.kind === "lost" && this.#socket !== undefined)
    ) {
      blame(port, backend, `udp: ${end.reason}`, context.log);
    }
    this.#lose();
    const bytes = this.#kept.take(context.timers.now());
    if (isRefused) {
      this.owner.onRefusal(
        this,
        bytes && {
          bytes,
          by: this.#hasAnswered
            ? new Set([backend])
            : new Set(this.refusers).add(backend),
        },
      );
    }
    this.owner.onClosed();
  }

  #open(far: Conduit): void {
    const { reports, timers } = this.owner.context;
    this.#state = "open";
    if (far instanceof DatagramConduit) this.#socket = far;
    this.#far = reports.connected(far, this, timers.now());
    this.#far.attach(this);
    for (const bytes of this.takeWaiting()) this.#send(bytes);
  }

  #send(bytes: Uint8Array): boolean {
    if (this.#state !== "open") return false;
    const far = this.#far!;
    far.write(bytes);
    if (this.#socket?.isOver === true) {
      // That an earlier one was refused is found out by trying another.
      this.#lose();
      return false;
    }
    const { port, context } = this.owner;
    this.#kept.keep(bytes, context.timers.now());
    this.#backend!.bytesSent += bytes.length;
    port.counts.bytesFromClients += bytes.length;
    return true;
  }

  #lose(): void {
    const was = this.#state;
    this.#state = "over";
    if (was === "over") return;
    if (was === "open") this.#backend!.closed();
    this.owner.onLost(this);
  }
}

/** Its client, or its service, has gone while it was dialed for. */
const OVER = {
  reason: "cancelled",
  message: "the session is over",
  tunnelCode: "TUN509",
} as const;

const NOBODY: ReadonlySet<Backend> = new Set();

function lengthOf(waiting: readonly Uint8Array[]): number {
  return waiting.reduce((sum, { length }) => sum + length, 0);
}

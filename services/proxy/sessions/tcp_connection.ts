/**
 * One client of a TCP port: first it looks for a backend, and then it is joined
 * with that by the tunnel's own transfer loop.
 *
 * @module
 */

import { conduitOf } from "../../../net/stream/stream_conduit.ts";
import { EARLY_WAIT_MS, firstBytes } from "../../../net/stream/first_bytes.ts";
import { Socket } from "../../../net/stream/socket.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import type { ConnectionFacts } from "../../../platform/log/connection_log.ts";
import { dialSpan } from "../../../platform/tracing/tracing.ts";
import type {
  BegunDial,
  DialProblem,
} from "../../../platform/conduits/dial_reports.ts";
import { newConnectionId } from "../../../platform/process/connection_ids.ts";
import { setUserTimeout } from "../../../net/libc/tcp_options.ts";
import { abandon } from "../../../proto/link/dial_handler.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../../proto/transfer/observed_conduit.ts";
import { join, type Joined } from "../../../proto/transfer/transfer.ts";
import { dialBackend } from "./backend_dialer.ts";
import type { Backend } from "../balancer/backend.ts";
import { hostOf } from "../../../proto/peer/host_port.ts";
import { IdleLink } from "./session_lists.ts";
import type { TcpPortProxy } from "./tcp_proxy.ts";

/** One client, first looking for a backend and then joined with it. */
export class TcpConnection extends IdleLink implements ConduitObserver {
  readonly #dialing = new AbortController();
  readonly #id = newConnectionId();
  /**
   * Its description for people; it can be ended while it looks for a backend.
   */
  readonly #dial: BegunDial;
  /** Why it is given up, if it is. */
  #gone = "the client has left";
  #backend: Backend | undefined;
  /**
   * The client's socket, for a look at its first bytes; only when that saves a
   * round trip.
   */
  #looked: Socket | undefined;
  /** The client's first bytes, which the dial brings. */
  #early = NO_BYTES;
  #joined: Joined | undefined;
  #joinedMs: number | undefined;
  /** Whether one of its sides is over. */
  isHalfClosed = false;
  #isStopped = false;
  #isOver = false;
  /** How far it had come at the last look. */
  #bytesSeen = 0;

  /** @param userTimeoutMs See `ServicePolicy.userTimeoutMs`. */
  constructor(
    private readonly stream: Stream,
    private readonly owner: TcpPortProxy,
    private readonly userTimeoutMs: number,
  ) {
    super();
    const askedMs = owner.context.timers.now();
    const facts = this.#facts();
    this.#dial = {
      id: this.#id,
      askedMs,
      facts,
      span: dialSpan("serve client", facts),
      kill: (reason) => void this.stop(reason),
    };
  }

  /** The backend's conduit. */
  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** Whether it has moved since the last look. Dials have times of their own. */
  hasMoved(): boolean {
    const bytes = this.#joined?.bytes;
    const hasMoved = bytes === undefined || bytes !== this.#bytesSeen;
    this.#bytesSeen = bytes ?? 0;
    return hasMoved;
  }

  async run(): Promise<void> {
    const { port, context } = this.owner;
    const { reports } = context;
    const dial = this.#dial;
    reports.began(dial);
    try {
      const found = await dialBackend(port, context, {
        protocol: "tcp",
        clientHost: hostOf(this.stream.remoteAddress),
        id: this.#id,
        trace: dial.span?.context,
        userTimeoutMs: this.userTimeoutMs,
        takeEarly: () => this.#takeEarly(),
        signal: this.#dialing.signal,
      });
      reports.over(dial);
      if (found.kind !== "backend") return this.#nobody();
      this.#backend = found.backend;
      if (!this.#isOver) return this.#join(found.conduit);
      found.backend.closed();
      abandon(found.conduit, this.#gone);
      reports.failed(cancelled(this.#gone), this.#found);
    } catch (error) {
      reports.over(dial);
      this.#refuse();
      throw error;
    }
  }

  /** Reported with this when its backend is known. */
  get #found(): BegunDial {
    const facts = this.#facts();
    return { ...this.#dial, facts, earlyBytes: this.#early.length };
  }

  /**
   * Ends it in any state; that may take a moment.
   *
   * @returns `false` when it was ending already.
   */
  stop(reason: string): boolean {
    if (this.#isStopped || this.#isOver) return false;
    this.#isStopped = true;
    this.#gone = reason;
    if (this.#joined !== undefined) this.#joined.giveUp(reason);
    else {
      this.#dialing.abort();
      this.#refuse();
    }
    return true;
  }

  received(bytes: number): void {
    this.#backend!.bytesReceived += bytes;
    this.owner.port.counts.bytesToClients += bytes;
  }

  sent(bytes: number): void {
    this.#backend!.bytesSent += bytes;
    this.owner.port.counts.bytesFromClients += bytes;
  }

  ended(): void {
    this.#backend!.closed();
  }

  async #takeEarly(): Promise<Uint8Array> {
    const { timers } = this.owner.context;
    try {
      if (this.#looked === undefined) {
        this.#looked = new Socket(this.stream);
        await firstBytes(this.#looked, EARLY_WAIT_MS, timers);
      }
      return this.#early = this.#looked.bytes;
    } catch {
      // It went before it said anything: that is no backend's business.
      this.#dialing.abort();
      return NO_BYTES;
    }
  }

  #join(far: Conduit): void {
    const { port, context: { reports, timers } } = this.owner;
    setUserTimeout(this.stream.descriptor, this.userTimeoutMs);
    const openedMs = this.#joinedMs = timers.now();
    port.times.connect.observe((openedMs - this.#dial.askedMs) / 1_000);
    const observed = reports.connected(far, this.#found, openedMs, {
      own: this,
    });
    this.#joined = join(
      conduitOf(this.#clientStream()),
      observed,
      () => this.#over(),
      () => this.#onHalfClosed(),
    );
    const backend = this.#backend!;
    if (!backend.isUsable) this.owner.left([backend], "removed");
  }

  #onHalfClosed(): void {
    if (this.#isOver) return;
    this.isHalfClosed = true;
    this.owner.onHalfClosed(this);
  }

  /** The client, without what the dial has brought already. */
  #clientStream(): Stream {
    const looked = this.#looked;
    if (looked === undefined) return this.stream;
    looked.drop(this.#early.length);
    return looked.handOver();
  }

  #facts(): ConnectionFacts {
    const known = {
      id: this.#id,
      service: this.owner.port.key,
      from: this.stream.remoteAddress,
    };
    if (this.#backend === undefined) return known;
    const address = this.#backend.key;
    return { ...known, target: { protocol: "tcp", address } };
  }

  #nobody(): void {
    const { port, context } = this.owner;
    const message = port.lastError ?? "no endpoint could be reached";
    // A client that has left, or was stopped, knows why.
    const problem: DialProblem = this.#dialing.signal.aborted
      ? cancelled(this.#gone)
      : { reason: "endpoint", message, tunnelCode: "TUN521" };
    context.reports.failed(problem, this.#found);
    this.#refuse();
  }

  /**
   * A reset tells the client that it had no backend; a clean end would hide
   * that.
   */
  #refuse(): void {
    if (this.#isOver) return;
    this.owner.port.counts.refused++;
    this.stream.reset();
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    if (this.#joinedMs !== undefined) {
      const { port, context } = this.owner;
      const ms = context.timers.now() - this.#joinedMs;
      port.times.length.observe(ms / 1_000);
    }
    this.owner.onOver(this);
  }
}

function cancelled(message: string): DialProblem {
  return { reason: "cancelled", message, tunnelCode: "TUN509" };
}

const NO_BYTES: Uint8Array = new Uint8Array(0);

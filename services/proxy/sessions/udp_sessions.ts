/**
 * Serves a port over UDP: each client address has a session with a backend, for
 * as long as datagrams go either way.
 *
 * UDP does not say that a backend is gone, so this does: sessions with a
 * backend that goes, or is ill while another one is well, leave it at once, and
 * the client's next datagram finds another one. Answers that are under way
 * still arrive for {@linkcode GRACE_MS}. A datagram that its backend has
 * refused (ICMP) goes to another one at once, because its client may have no
 * other to send. Without a usable backend there is no session, so no client is
 * bound to a dead backend when another one comes.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  unawaited,
} from "../../../platform/errors/internal_errors.ts";
import { listenError } from "../../../net/bind/listen_error.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import {
  type DatagramAddress,
  openDatagramSocket,
  senderKey,
  senderOf,
} from "../../../net/datagram/datagram_socket.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { isWildcard } from "../../../net/libc/socket_address.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { BackendFound } from "./backend_dialer.ts";
import type { Backend } from "../balancer/backend.ts";
import { IdleList } from "./session_lists.ts";
import {
  type RefusedDatagram,
  UNANSWERED_TRIES_MAX,
  type UnansweredBudget,
} from "./unanswered_datagram.ts";
import {
  type PortListener,
  type PortProxy,
  type ProxiedPort,
  type ProxyContext,
} from "../listeners/proxied_port.ts";
import { type SessionHome, UdpSession } from "./udp_session.ts";

/**
 * Sessions of one port at once; then the one that was silent for longest makes
 * room. A sender can invent clients, and each costs a local port, of which
 * Linux has 28,232 in total.
 */
export const SESSIONS_MAX = 20_000;

/** How long answers of a backend that goes are still passed on. */
export const GRACE_MS = 2_000;

/**
 * How long a client's datagrams are dropped after no backend could be dialed:
 * UDP cannot tell a client to stop.
 */
export const SESSIONS_REFUSED_PAUSE_MS = 1_000;

/** How long there are no new sessions when this machine is short of something. */
export const SHORT_PAUSE_MS = 100;

/** Used when the kernel cannot say which address a datagram came to. */
const ANSWERS_FROM_ANYWHERE =
  "answers may leave from another address of this machine than was asked, " +
  "because the C library cannot be asked (no FFI); give the service `listen` " +
  "with one address";

/** Silent sessions are looked for at most so many times within the timeout, */
const SWEEPS_PER_IDLE = 16;

/** and at least so often, because a service may come to want another time. */
const SWEEP_MS_MAX = 5_000;

export class UdpSessions implements PortProxy {
  /** For datagrams that are kept until they are answered. */
  readonly kept: UnansweredBudget = { bytes: 0 };
  /** Those that take datagrams of their clients. */
  readonly #current = new IdleList<UdpSession>();
  /** Those whose backend goes. */
  readonly #leaving = new Set<UdpSession>();
  readonly #homes = new Set<SessionHome>();
  readonly #drained = Promise.withResolvers<void>();
  #isDraining = false;
  /** Sessions that hold anything at all. */
  #unclosed = 0;
  #sweep: Timer | undefined;
  #shortUntilMs = -Infinity;

  constructor(
    readonly port: ProxiedPort,
    readonly context: ProxyContext,
    private readonly sessionsMax: number = SESSIONS_MAX,
    private readonly openSocket: typeof openDatagramSocket = openDatagramSocket,
  ) {}

  async open({ hostname, port }: ListenAddress): Promise<PortListener> {
    const socket = await this.openSocket({ hostname, port }, {
      isServer: true,
    }).catch((error) => {
      throw listenError(hostPort(hostname, port), error);
    });
    if (isWildcard(hostname) && !socket.reportsLocal) {
      this.context.log.warn(`${this.port.key}: ${ANSWERS_FROM_ANYWHERE}`, {
        code: "TUN115",
      });
    }
    const home: SessionHome = { socket, sessions: new Map() };
    this.#homes.add(home);
    const broken = Promise.withResolvers<string>();
    socket.listen({
      onDatagram: (bytes, hostname, port, local) =>
        this.#receive(home, bytes, hostname, port, local),
      onError: (error) => broken.resolve(error.message),
    });
    const finished = Promise.withResolvers<void>();
    const { address } = socket;
    const end = () => {
      this.#homes.delete(home);
      this.#endAll(home, "the port is not served any more");
    };
    return {
      address: hostPort(address.hostname, address.port),
      port: address.port,
      finished: finished.promise,
      broken: broken.promise,
      close() {
        end();
        socket.close(finished.resolve);
      },
      leave() {
        end();
        const left = socket.leave?.();
        // Harmless a second time, and tells when the port is free.
        socket.close(finished.resolve);
        return left;
      },
    };
  }

  get load(): number {
    return this.#unclosed;
  }

  left(backends: readonly Backend[]): void {
    const gone = new Set(backends);
    const leaving: UdpSession[] = [];
    const moved = [...this.#current]
      .filter(({ backend }) => backend !== undefined && gone.has(backend));
    for (const session of moved) {
      this.port.counts.moved++;
      this.#forget(session);
      if (session.leave()) leaving.push(session);
      else this.#again(session);
    }
    if (leaving.length === 0) return;
    for (const session of leaving) this.#leaving.add(session);
    this.context.timers.after(GRACE_MS, () => {
      for (const session of leaving) {
        this.#leaving.delete(session);
        session.end("its endpoint is left");
      }
    });
  }

  drain(_drainMs: number): Promise<void> {
    this.#isDraining = true;
    for (const home of this.#homes) {
      this.#endAll(home, "the service was removed");
    }
    this.#settle();
    return this.#drained.promise;
  }

  /** The backend has sent bytes, which were passed on. */
  onAnswer(session: UdpSession): void {
    if (session.isLeaving) return;
    this.#current.touch(session, this.context.timers.now());
  }

  /** The client gets no backend; `why` is not `backend`. */
  onRefused(session: UdpSession, why: BackendFound["kind"]): void {
    this.port.counts.refused++;
    this.port.counts.datagramsDropped += session.takeWaiting().length;
    const { timers } = this.context;
    const message = this.port.lastError ?? "no endpoint could be reached";
    this.context.reports.failed(
      { reason: "endpoint", message, tunnelCode: "TUN521" },
      session,
    );
    const end = () => {
      // It may have made room for another session meanwhile.
      if (!session.isOver) this.#forget(session);
      session.end("no endpoint could be reached");
    };
    if (why !== "short") {
      return void timers.after(SESSIONS_REFUSED_PAUSE_MS, end);
    }
    end();
    this.#shortUntilMs = timers.now() + SHORT_PAUSE_MS;
  }

  /** It takes nothing more from its client, by no doing of ours. */
  onLost(session: UdpSession): void {
    this.#forget(session);
  }

  /** Its backend refused, and it is over; `onClosed` comes next. */
  onRefusal(session: UdpSession, datagram: RefusedDatagram | undefined): void {
    const { counts, balancer } = this.port;
    counts.sessionsRefused++;
    const { client, home } = session;
    if (datagram === undefined || !this.#homes.has(home)) return;
    const { bytes, by } = datagram;
    const isAnyLeft = by.size < UNANSWERED_TRIES_MAX &&
      [...balancer.backends].some((one) => one.isUsable && !by.has(one));
    if (!isAnyLeft) {
      counts.datagramsDropped++;
      return;
    }
    counts.datagramsResent++;
    // It may have said something else meanwhile.
    const key = keyOf(session);
    if (home.sessions.get(key)?.receive(bytes)) return;
    if (home.sessions.has(key)) counts.datagramsDropped++;
    else this.#welcome(home, bytes, client, by);
  }

  /** All that it had is free; once. */
  onClosed(): void {
    this.#unclosed--;
    this.#shortUntilMs = -Infinity;
    this.#settle();
    this.context.changed?.();
  }

  #receive(
    home: SessionHome,
    bytes: Uint8Array,
    hostname: string,
    port: number,
    local: string | undefined,
  ): void {
    const key = senderKey(hostname, port, local);
    const session = home.sessions.get(key);
    if (session === undefined) {
      return this.#welcome(home, bytes, senderOf(hostname, port, local));
    }
    this.#current.touch(session, this.context.timers.now());
    if (session.receive(bytes)) return;
    if (home.sessions.has(key)) this.port.counts.datagramsDropped++;
    else this.#welcome(home, bytes, session.client);
  }

  /** A session for a client that has none. */
  #welcome(
    home: SessionHome,
    bytes: Uint8Array,
    client: DatagramAddress,
    refusers?: ReadonlySet<Backend>,
  ): void {
    const { timers } = this.context;
    const isShort = timers.now() < this.#shortUntilMs;
    if (isShort || this.port.balancer.usableCount === 0) {
      this.port.counts.refused++;
      this.port.counts.datagramsDropped++;
      if (!isShort) this.port.lastError = "no endpoint is ready";
      return;
    }
    if (this.#current.size >= this.sessionsMax) this.#crowdOut();
    const session = new UdpSession(client, home, this, refusers);
    home.sessions.set(keyOf(session), session);
    this.#current.add(session, timers.now());
    this.#unclosed++;
    this.context.changed?.();
    this.port.counts.accepted++;
    this.#armSweep();
    session.receive(bytes);
    const end = () => session.end(INTERNAL_ERROR);
    unawaited("proxy", session.start(), end);
  }

  /** What waited in a session for a backend that goes waits in the next one. */
  #again(session: UdpSession): void {
    const waiting = session.takeWaiting();
    session.end("its endpoint is left");
    const { client: { hostname, port, local }, home } = session;
    for (const bytes of waiting) {
      this.#receive(home, bytes, hostname, port, local);
    }
  }

  #crowdOut(): void {
    const session = this.#current.oldest!;
    this.port.counts.crowdedOut++;
    this.#forget(session);
    session.end("another client needs its place");
  }

  /** The client's next datagram begins a new session. */
  #forget(session: UdpSession): void {
    if (this.#leaving.delete(session)) return;
    session.home.sessions.delete(keyOf(session));
    this.#current.delete(session);
  }

  #endAll(home: SessionHome, reason: string): void {
    for (const session of [...home.sessions.values(), ...this.#leaving]) {
      if (session.home !== home) continue;
      this.#forget(session);
      session.end(reason);
    }
  }

  get #idleMs(): number {
    return this.port.policy.udpIdleMs ?? this.context.udpIdleMs;
  }

  /** One timer for all of them, which looks when it fires. */
  #armSweep(): void {
    const { oldest } = this.#current;
    if (this.#sweep !== undefined || oldest === undefined) return;
    const { timers } = this.context;
    const dueMs = oldest.lastHeardMs + this.#idleMs - timers.now();
    const delayMs = Math.max(dueMs, this.#idleMs / SWEEPS_PER_IDLE);
    this.#sweep = timers.after(Math.min(delayMs, SWEEP_MS_MAX), () => {
      this.#sweep = undefined;
      this.#endIdle();
      this.#armSweep();
    });
  }

  #endIdle(): void {
    const sinceMs = this.context.timers.now() - this.#idleMs;
    for (;;) {
      const { oldest } = this.#current;
      if (oldest === undefined || oldest.lastHeardMs > sinceMs) return;
      this.#forget(oldest);
      oldest.end("no datagram in either direction");
    }
  }

  #settle(): void {
    if (!this.#isDraining || this.#unclosed > 0) return;
    this.#sweep?.cancel();
    this.#drained.resolve();
  }
}

function keyOf({ client }: UdpSession): string {
  return senderKey(client.hostname, client.port, client.local);
}

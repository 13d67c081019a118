/**
 * Serves a port over TCP: each client is joined with a backend.
 *
 * Connecting is no business of the accept loop, so a dead backend holds up only
 * the client that was to go there, and that one for a try: then the next backend
 * is dialed, each once at most. What follows is the tunnel's own transfer loop,
 * with its half-closes and resets.
 *
 * @module
 */

import { unawaited } from "../../host/process/internal_errors.ts";
import { type ListenAddress, listenTcp } from "../../host/listen/listeners.ts";
import { conduitOf } from "../../host/sockets/conduit_of_socket.ts";
import { hostOf } from "../../host/sockets/deno_socket.ts";
import {
  EARLY_WAIT_MS,
  type FirstOctets,
  firstOctets,
} from "../../host/sockets/first_octets.ts";
import type { OctetSocket } from "../../host/sockets/octet_socket.ts";
import {
  type ConnectionFacts,
  ConnectionLog,
} from "../../host/process/connection_log.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  type ConduitObserver,
  ObservedConduit,
} from "../../proto/transfer/observed_conduit.ts";
import { join, type Joined } from "../../proto/transfer/transfer.ts";
import { dialBackend } from "./backend_dialer.ts";
import type { Backend } from "./balancer/backend.ts";
import {
  HALF_CLOSED_IDLE_MS,
  type HalfClosed,
  HalfClosedConnections,
} from "./half_closed.ts";
import type {
  PortListener,
  PortProxy,
  ProxiedPort,
  ProxyContext,
} from "./proxied_port.ts";
import { type Member, Roster } from "./roster.ts";

/**
 * Connections of one port at once. Whoever may connect can do so without end,
 * and each costs two descriptors; with more a process has other troubles.
 */
export const CONNECTIONS_MAX = 65_536;

const SILENT_TEXT = "one side had ended and nothing was heard of the other " +
  `for ${HALF_CLOSED_IDLE_MS / 60_000} minutes`;

/** See the module description. */
export class TcpProxy implements PortProxy {
  readonly #port: ProxiedPort;
  readonly #context: ProxyContext;
  readonly #connectionsMax: number;
  readonly #connections = new Roster<Connection>();
  readonly #halfClosed: HalfClosedConnections;
  readonly #log: ConnectionLog;
  readonly #drained = Promise.withResolvers<void>();
  #isDraining = false;

  constructor(
    port: ProxiedPort,
    context: ProxyContext,
    connectionsMax: number = CONNECTIONS_MAX,
  ) {
    this.#port = port;
    this.#context = context;
    this.#connectionsMax = connectionsMax;
    this.#log = new ConnectionLog(context.log, context.timers);
    this.#halfClosed = new HalfClosedConnections(context.timers, (joined) => {
      port.counts.endedHalfClosed++;
      port.lastError = SILENT_TEXT;
      joined.giveUp(SILENT_TEXT);
    });
  }

  open(at: ListenAddress): PortListener {
    return listenTcp(at, {
      onConnection: (socket) => this.#accept(socket),
      onProblem: (line) => this.#context.log.warn(`${this.#port.key}: ${line}`),
    });
  }

  get load(): number {
    return this.#connections.size;
  }

  /** What is connected stays so: its backend may well finish what it began. */
  left(): void {}

  drain(drainMs: number): Promise<void> {
    this.#isDraining = true;
    this.#settle();
    const giveUp = () => {
      for (const one of [...this.#connections]) {
        one.stop("the service was removed");
      }
    };
    if (drainMs === 0) giveUp();
    else if (this.#connections.size > 0) {
      const deadline = this.#context.timers.after(drainMs, giveUp);
      void this.#drained.promise.then(() => deadline.cancel());
    }
    return this.#drained.promise;
  }

  #accept(socket: OctetSocket): void {
    const { counts } = this.#port;
    counts.accepted++;
    if (this.#connections.size >= this.#connectionsMax) {
      counts.refused++;
      this.#port.lastError = `more than ${this.#connectionsMax} connections`;
      return socket.reset();
    }
    const connection = new Connection(this.#port, this.#context, {
      socket,
      host: hostOf(socket.remoteAddress),
      halfClosed: this.#halfClosed,
      log: this.#log,
      onOver: () => {
        this.#connections.delete(connection);
        this.#settle();
      },
    });
    this.#connections.add(connection);
    unawaited("proxy", connection.run());
  }

  #settle(): void {
    if (this.#isDraining && this.#connections.size === 0) {
      this.#halfClosed.stop();
      this.#drained.resolve();
    }
  }
}

/** Who came. */
interface Client {
  readonly socket: OctetSocket;
  /** Its IP address. */
  readonly host: string;
  /** Where it is while one of its sides is over. */
  readonly halfClosed: HalfClosedConnections;
  readonly log: ConnectionLog;
  readonly onOver: () => void;
}

/** One client, first looking for a backend and then joined with it. */
class Connection implements ConduitObserver, Member {
  place = -1;
  readonly #port: ProxiedPort;
  readonly #context: ProxyContext;
  readonly #client: Client;
  readonly #dialing = new AbortController();
  readonly #startMs: number;
  #backend: Backend | undefined;
  /** Asked for only where it saves a round trip. */
  #first: FirstOctets | undefined;
  #joined: Joined | undefined;
  #halfClosed: HalfClosed | undefined;
  #isOver = false;

  constructor(port: ProxiedPort, context: ProxyContext, client: Client) {
    this.#port = port;
    this.#context = context;
    this.#client = client;
    this.#startMs = context.timers.now();
  }

  async run(): Promise<void> {
    try {
      const found = await dialBackend(this.#port, this.#context, {
        protocol: "tcp",
        clientHost: this.#client.host,
        takeEarly: () => this.#takeEarly(),
        signal: this.#dialing.signal,
      });
      if (found.kind !== "backend") return this.#nobody();
      this.#backend = found.backend;
      if (!this.#isOver) return this.#join(found.conduit);
      found.backend.closed();
      abandon(found.conduit, "the service was removed");
    } catch (error) {
      this.#refuse();
      throw error;
    }
  }

  /** Ends it, whatever it is doing. */
  stop(reason: string): void {
    if (this.#joined !== undefined) return this.#joined.giveUp(reason);
    this.#dialing.abort();
    this.#refuse();
  }

  received(octets: number): void {
    this.#backend!.octetsReceived += octets;
    this.#port.counts.octetsToClients += octets;
  }

  sent(octets: number): void {
    this.#backend!.octetsSent += octets;
    this.#port.counts.octetsFromClients += octets;
  }

  ended(): void {
    this.#backend!.closed();
  }

  async #takeEarly(): Promise<Uint8Array> {
    const { timers } = this.#context;
    const { socket } = this.#client;
    try {
      this.#first ??= await firstOctets(socket, EARLY_WAIT_MS, timers);
      return this.#first.early;
    } catch {
      // It went before it said anything: that is no backend's business.
      this.#dialing.abort();
      return new Uint8Array();
    }
  }

  #join(far: Conduit): void {
    const { socket, halfClosed, log } = this.#client;
    const observer = log.wantsAll
      ? log.opened(this.#facts(), this.#startMs, this)
      : this;
    // What is in it was brought by the dial.
    if (this.#first !== undefined) observer.sent(this.#first.early.length);
    this.#joined = join(
      conduitOf(this.#first?.socket ?? socket),
      new ObservedConduit(far, observer),
      () => this.#over(),
      (joined) => this.#halfClosed = halfClosed.add(joined),
    );
    this.#first = undefined;
  }

  #facts(): ConnectionFacts {
    const known = {
      service: this.#port.key,
      from: this.#client.socket.remoteAddress,
    };
    if (this.#backend === undefined) return known;
    const address = this.#backend.key;
    return { ...known, target: { protocol: "tcp", address } };
  }

  #nobody(): void {
    // Who is stopped, or has left, knows why.
    if (!this.#dialing.signal.aborted) {
      const message = this.#port.lastError ?? "no endpoint could be reached";
      this.#client.log.failed({ reason: "endpoint", message }, this.#facts());
    }
    this.#refuse();
  }

  /** A reset says what an end would hide: nobody was there. */
  #refuse(): void {
    if (this.#isOver) return;
    this.#port.counts.refused++;
    this.#client.socket.reset();
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    if (this.#halfClosed !== undefined) {
      this.#client.halfClosed.delete(this.#halfClosed);
    }
    this.#client.onOver();
  }
}

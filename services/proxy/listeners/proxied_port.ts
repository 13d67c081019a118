/**
 * One port of one service: what is proxied, and what that needs to know.
 *
 * The seam of this folder. `proxy.ts` makes a {@linkcode ProxiedPort} for each
 * port of each service and keeps it up to date; `service_listener.ts` decides
 * where it listens; a {@linkcode PortProxy} (`tcp_proxy.ts`, `udp_sessions.ts`)
 * serves clients. A service may change at any time, so its settings are read
 * where they are needed and never copied.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import type { DialReports } from "../../../platform/conduits/dial_reports.ts";
import type { Families } from "../balancer/families.ts";
import {
  type Ejection,
  keyOf,
  type Protocol,
  type Service,
  type ServicePolicy,
  type ServicePort,
} from "../../catalog/model/model.ts";
import type {
  BoundListener,
  ListenAddress,
} from "../../../net/listen/listeners.ts";
import type { Backend } from "../balancer/backend.ts";
import { Balancer } from "../balancer/balancer.ts";
import type { Random } from "../balancer/strategies.ts";
import type { EndpointDialer } from "../endpoints/endpoint_dialer.ts";
import { Histogram } from "../../../platform/metrics/metrics.ts";

/** A proxy's tools from its machine, and its settings. */
export interface ProxyContext extends Tools, ProxySettings {
  /** The listeners for dials and connections. */
  readonly reports: DialReports;
  /** Ports are open, or connections and sessions have come or gone. */
  changed?(): void;
  readonly random: Random;
  readonly dialer: EndpointDialer;
  /** The address families of this machine; absent: it has both. */
  readonly families?: Pick<Families, "lacking">;
}

/** What holds for all ports, and where a service is mute. */
export interface ProxySettings {
  /** Other processes serve the same ports. */
  readonly isShared?: boolean;
  /** How long the first, second … try of a connection may take to connect. */
  readonly dialTimeoutsMs: readonly number[];
  /** A UDP session ends after this time without a datagram. */
  readonly udpIdleMs: number;
  /** How long connections may go on when their service is removed. */
  readonly drainMs: number;
  /** What holds for TCP connections and dials where a service is mute. */
  readonly defaults: ConnectionDefaults;
}

/** See the fields of the same names in `ServicePolicy`. */
export type ConnectionDefaults =
  & Required<
    Pick<
      ServicePolicy,
      | "onEndpointRemoved"
      | "onEndpointDown"
      | "endpointDrainMs"
      | "idleTimeoutMs"
      | "halfClosedTimeoutMs"
      | "userTimeoutMs"
    >
  >
  & { readonly ejection: Ejection };

/** The effect on connections when their backend gets no new ones. */
export type Leaving =
  /** It goes away. */
  | "removed"
  /** It stays and does not answer. */
  | "down"
  /** All of the service goes; `drain` says how long it may take. */
  | "service removed";

/**
 * A listener of a port. Closed, it accepts nothing more; connections go on, and
 * UDP sessions through it end.
 */
export interface PortListener extends BoundListener {
  /** Settles when the address is free; absent: when `close` returns. */
  readonly finished?: Promise<void>;
  /**
   * Settles with the reason when the listener fails without being closed;
   * absent: it cannot fail.
   */
  readonly broken?: Promise<string> | undefined;
}

/** Serves one proxied port over one protocol, on any listener for it. */
export interface PortProxy {
  /**
   * Listens. Called again for another address, it does so there as well; what
   * is open on an address does not depend on the listener of another one.
   *
   * @throws {ListenError}
   */
  open(at: ListenAddress): Promise<PortListener> | PortListener;
  /** Connections or sessions, including those that still look for a backend. */
  readonly load: number;
  /** The service's settings for running connections may have changed. */
  updated?(): void;
  /**
   * These backends get nothing new: sessions move, and connections go on by
   * their service's setting. May be called again.
   */
  left(backends: readonly Backend[], why: Leaving): void;
  /**
   * The service is gone, and so are its listeners. Running connections may go
   * on for `drainMs`; 0 ends them now. UDP sessions end now, because UDP has no
   * end to wait for.
   *
   * @returns Settles when nothing runs any more.
   */
  drain(drainMs: number): Promise<void>;
}

/** Makes the proxy of a port. */
export type CreatePortProxy = (
  port: ProxiedPort,
  context: ProxyContext,
) => PortProxy;

/**
 * The counts of a port, with the name and the help of each metric; backends
 * have bytes and connections, too.
 */
export const PORT_COUNTS = {
  accepted: ["connections_total", "Clients that came."],
  refused: [
    "refused_connections_total",
    "Clients for which no endpoint could be reached.",
  ],
  retries: [
    "retries_total",
    "Dials of a further endpoint after one that failed.",
  ],
  ejections: [
    "ejections_total",
    "Times that an endpoint was left out after failures.",
  ],
  bytesFromClients: [
    "bytes_from_clients_total",
    "Bytes that went to endpoints.",
  ],
  bytesToClients: [
    "bytes_to_clients_total",
    "Bytes that came from endpoints.",
  ],
  endedHalfClosed: [
    "ended_half_closed_total",
    "TCP connections that were silent too long after one side had ended.",
  ],
  endedIdle: [
    "ended_idle_total",
    "TCP connections that were silent too long.",
  ],
  endedByEndpoint: [
    "ended_by_endpoint_total",
    "TCP connections that were reset because their endpoint went or was down.",
  ],
  moved: [
    "sessions_moved_total",
    "UDP sessions that ended because their endpoint went or was ill.",
  ],
  sessionsRefused: [
    "sessions_refused_total",
    "UDP sessions that ended because their endpoint refused datagrams.",
  ],
  datagramsResent: [
    "resent_datagrams_total",
    "Datagrams that one endpoint refused and another one was sent.",
  ],
  crowdedOut: [
    "sessions_crowded_out_total",
    "UDP sessions that made room for others, at the limit.",
  ],
  datagramsDropped: [
    "dropped_datagrams_total",
    "Datagrams of clients for which no endpoint could be reached.",
  ],
} as const;

export type PortCounts = Record<keyof typeof PORT_COUNTS, number>;

const NOTHING_COUNTED = Object.fromEntries(
  Object.keys(PORT_COUNTS).map((name) => [name, 0]),
) as PortCounts;

export class ProxiedPort {
  /** `default/web`, or `default/web:http` where the port has a name. */
  readonly key: string;
  readonly service: string;
  readonly name: string;
  readonly balancer: Balancer;
  readonly counts: PortCounts = { ...NOTHING_COUNTED };
  /** What went wrong last, for people. */
  lastError: string | undefined;
  #times: PortTimes | undefined;
  #service: Service;
  #port: ServicePort;

  constructor(
    service: Service,
    port: ServicePort,
    { timers, random, families, isShared }: Pick<
      ProxyContext,
      "timers" | "random" | "families" | "isShared"
    >,
  ) {
    this.service = keyOf(service);
    this.name = port.name;
    this.key = portKey(this.service, port.name);
    this.balancer = new Balancer({ clock: timers, random, isShared, families });
    this.#service = service;
    this.#port = port;
  }

  get protocol(): Protocol {
    return this.#port.protocol;
  }

  get namespace(): string {
    return this.#service.namespace;
  }

  /** Writable counts: thousands of ports are never used. */
  get times(): PortTimes {
    return this.#times ??= new PortTimes();
  }

  /** Readable counts; absent: it has had no connection yet. */
  get timesSeen(): PortTimes | undefined {
    return this.#times;
  }

  get policy(): ServicePolicy {
    return this.#service.policy;
  }

  get servicePort(): ServicePort {
    return this.#port;
  }

  /** See `Service.announced`. */
  get isAnnounced(): boolean {
    return this.#service.announced === true;
  }

  /** Its position among the service's ports, in the source's order. */
  get position(): number {
    return this.#service.ports.indexOf(this.#port);
  }

  /** The catalog's entry has changed. */
  update(service: Service, port: ServicePort): void {
    this.#service = service;
    this.#port = port;
  }
}

/** The name of a service's port. */
export function portKey(service: string, portName: string): string {
  return portName === "" ? service : `${service}:${portName}`;
}

/**
 * Ports with a fixed address choose first, before those that take any, and
 * ports that agents announce come after those that people configured. The rest
 * are sorted by name, so that places do not depend on the order in which
 * services come.
 */
export function inOrderOfPlacing<
  T extends Pick<ProxiedPort, "key" | "servicePort" | "isAnnounced">,
>(ports: readonly T[]): T[] {
  const rank = ({ servicePort, isAnnounced }: T) =>
    (isAnnounced ? 2 : 0) + (servicePort.listen === undefined ? 1 : 0);
  return [...ports].sort((one, other) =>
    rank(one) - rank(other) || (one.key < other.key ? -1 : 1)
  );
}

/** Seconds: from a neighbour's round trip to a dial that is given up. */
const CONNECT_BOUNDS =
  // deno-fmt-ignore: one line is what is read best.
  [.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10];

/** Seconds: from one request to a day. */
const LENGTH_BOUNDS = [.01, .1, 1, 10, 60, 300, 1_800, 7_200, 43_200, 86_400];

/**
 * How long the clients of one TCP port wait for their endpoint, and how long
 * they stay with it.
 */
export class PortTimes {
  /**
   * From the client's arrival to its connection with an endpoint, all tries
   * included.
   */
  readonly connect = new Histogram(CONNECT_BOUNDS);
  /** From the connection with an endpoint to the end. */
  readonly length = new Histogram(LENGTH_BOUNDS);
}

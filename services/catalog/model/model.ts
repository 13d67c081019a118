/**
 * What the catalog holds: services, the ports that they have, and the endpoints
 * behind them.
 *
 * Plain frozen data in one form, whatever source it comes from. It knows
 * neither sources nor listeners nor the choice of endpoints.
 *
 * @module
 */

/** How bytes travel between a program and an endpoint. */
export type Protocol = "tcp" | "udp";

/** The namespace of services that name none. */
export const DEFAULT_NAMESPACE = "default";

/**
 * How long a client stays with its endpoint by default; Kubernetes' default of
 * `sessionAffinityConfig.clientIP.timeoutSeconds`.
 */
export const DEFAULT_AFFINITY_TTL_MS = 10_800_000;

/** The default weight, and the largest that counts. */
export const DEFAULT_WEIGHT = 1;
export const WEIGHT_MAX = 1_000;

/** Something programs ask for by name. */
export interface Service {
  readonly namespace: string;
  readonly name: string;
  /** In the order of the source; names and (port, protocol) are unique. */
  readonly ports: readonly ServicePort[];
  readonly affinity: Affinity;
  readonly policy: ServicePolicy;
  /**
   * Only agents announce this service. Where another service claims the same,
   * such as a place to listen, the other one wins.
   */
  readonly announced?: true;
}

/** The proxy serves one port of one service. */
export interface ServicePort {
  /** Empty for the only port of a service. */
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  /**
   * Such as `http` or `redis`: a hint for people, and for discovery (see
   * `appProtocolOf`).
   */
  readonly appProtocol?: string;
  /** Requests that go elsewhere; only where `appProtocol` says what they are. */
  readonly routes?: readonly Route[];
  /** Where a proxy listens for it; absent: where the proxy thinks best. */
  readonly listen?: ServiceListen;
}

/** An address on the proxy's machine. */
export interface ServiceListen {
  /** An IP address. */
  readonly host?: string;
  readonly port: number;
}

/** Whether a client comes to the same endpoint again. */
export type Affinity =
  | { readonly kind: "none" }
  /**
   * Clients are known by source address, and remembered for this long after
   * their last visit.
   */
  | { readonly kind: "client-ip"; readonly ttlMs: number };

export const NO_AFFINITY: Affinity = Object.freeze({ kind: "none" });

/** How an endpoint is chosen for a new connection or session. */
export type Balance = typeof BALANCES[number];

export const BALANCES = [
  "round-robin",
  "random",
  "least-connections",
  "weighted",
] as const;

/** A service's own settings; an absent one means the proxy's default. */
export interface ServicePolicy {
  readonly balance?: Balance;
  /** Endpoints of the proxy's own zone first. */
  readonly zoneAware?: boolean;
  /** Endpoints on the proxy's own node before those. */
  readonly nodeAware?: boolean;
  /** For one try at one endpoint. */
  readonly dialTimeoutMs?: number;
  /** A UDP session ends after this time without a datagram. */
  readonly udpIdleMs?: number;
  /** How long connections may go on when their service is removed. */
  readonly drainMs?: number;
  /** The fate of TCP connections whose endpoint gets no new ones. */
  readonly onEndpointRemoved?: EndpointEnd;
  /** And of those whose endpoint is unready, or ill while another is well. */
  readonly onEndpointDown?: EndpointEnd;
  /** How long those have that are drained. */
  readonly endpointDrainMs?: number;
  /** A TCP connection ends after this time without a byte; 0: never. */
  readonly idleTimeoutMs?: number;
  /** The same of one of which one side has ended. */
  readonly halfClosedTimeoutMs?: number;
  /** How long a TCP peer may acknowledge nothing (TCP_USER_TIMEOUT); 0: see tcp(7). */
  readonly userTimeoutMs?: number;
  /** Go through the tunnel when an endpoint cannot be dialed directly. */
  readonly agentOnFailure?: boolean;
  readonly health?: HealthCheck;
  readonly ejection?: Partial<Ejection>;
}

/** What may become of the connections of an endpoint. */
export type EndpointEnd = typeof ENDPOINT_ENDS[number];

/**
 * They go on for as long as they like, or for a while and are reset then, or
 * are reset at once.
 */
export const ENDPOINT_ENDS = ["stay", "drain", "reset"] as const;

/** When an endpoint is left out because it cannot be dialed, and for how long. */
export interface Ejection {
  /** Dials that fail in a row; 0: it never is. */
  readonly failures: number;
  readonly timeMs: number;
}

export const NO_POLICY: ServicePolicy = Object.freeze({});

/** How an endpoint is asked whether it lives. */
export type HealthCheck = HealthCheckTimes & {
  /**
   * The port to check, at the same address, over TCP. Absent: each TCP port of
   * the service is checked itself, and its UDP ports are not checked.
   */
  readonly port?: number;
} & HealthQuestion;

interface HealthCheckTimes {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /**
   * Good answers in a row after which one that was ill is well again, and bad
   * ones after which one that was well is ill; absent: {@linkcode HEALTH_RISE},
   * {@linkcode HEALTH_FALL}. The very first answer counts alone.
   */
  readonly rise?: number;
  readonly fall?: number;
}

/** HAProxy's defaults. */
export const HEALTH_RISE = 2;
export const HEALTH_FALL = 3;

type HealthQuestion =
  | { readonly kind: "tcp" }
  | {
    readonly kind: "http";
    /** Begins with `/`. */
    readonly path: string;
    /** Absent: the endpoint's address. */
    readonly host?: string;
    /** The status codes that mean healthy; absent: 200 to 399. */
    readonly statuses?: readonly StatusRange[];
    readonly tls?: HealthTls;
  }
  /** `grpc.health.v1.Health/Check`. */
  | {
    readonly kind: "grpc";
    /** Empty: the server as a whole. */
    readonly service: string;
    /** `:authority`; absent: the endpoint's address. */
    readonly host?: string;
    readonly tls?: HealthTls;
  };

/** Both ends count. */
export interface StatusRange {
  readonly first: number;
  readonly last: number;
}

/** The status codes that mean healthy by default. */
export const WELL_STATUSES: readonly StatusRange[] = [
  { first: 200, last: 399 },
];

/** It is asked over TLS. */
export interface HealthTls {
  /** Its certificate has to be one that this machine trusts; absent: any is. */
  readonly verify?: boolean;
  /** Its name in SNI and in its certificate; absent: `host`, or its address. */
  readonly serverName?: string;
}

/** One place that serves a service. */
export interface Endpoint {
  /** An IP address in canonical form, or a host name. */
  readonly address: string;
  /**
   * The ports that this endpoint serves, by the names of the service's ports.
   * One address may be in several endpoints with different ports.
   */
  readonly ports: readonly EndpointPort[];
  readonly state: EndpointState;
  /** Name of the node that it is on. */
  readonly node?: string;
  readonly zone?: string;
  /** Zones that should use it (topology hints); absent: all. */
  readonly forZones?: readonly string[];
  /** 1 to {@linkcode WEIGHT_MAX}. */
  readonly weight: number;
  readonly via: Via;
}

export interface EndpointPort {
  readonly name: string;
  readonly port: number;
}

/** What an endpoint is good for. */
export type EndpointState =
  /** New connections are welcome. */
  | "ready"
  /** It goes away but still answers: better than nothing, for TCP and UDP. */
  | "serving"
  /** It goes away and answers no more. */
  | "terminating"
  /** It is there and does not answer yet, or not now. */
  | "unready";

/** The way to an endpoint. */
export type Via =
  | { readonly kind: "direct" }
  /** Through the tunnel; without an identifier its server chooses the agent. */
  | { readonly kind: "agent"; readonly agent?: AgentIdentifier };

/** Which agent. */
export interface AgentIdentifier {
  readonly key: typeof AGENT_KEYS[number];
  readonly value: string;
}

/** `id` is the agent's own name; the others are identifiers that it announced. */
export const AGENT_KEYS = ["uid", "host", "cidr", "id"] as const;

export const DIRECT: Via = Object.freeze({ kind: "direct" });

/** All endpoints of one service, in the order of the source. */
export interface ServiceEndpoints {
  /** `namespace/name`; see {@linkcode keyOf}. */
  readonly service: string;
  readonly endpoints: readonly Endpoint[];
}

/** The name of a service as one text: `namespace/name`. */
export function keyOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
): string {
  return `${namespace}/${name}`;
}

/** `namespace/name` of a text in which the namespace may be missing. */
export function keyFrom(text: string): string {
  return text.includes("/") ? text : `${DEFAULT_NAMESPACE}/${text}`;
}

/** What tells an endpoint from others of its service: address, ports, network. */
export function endpointKeyOf(endpoint: Endpoint): string {
  const { address, ports } = endpoint;
  return `${address}${networkOf(endpoint)} ${
    ports.map(({ name, port }) => `${name}:${port}`).join(",")
  }`;
}

/**
 * The network in which an endpoint's address is meant: `@id=edge-1` is the
 * network behind that agent, and an empty text the one that all share.
 * `127.0.0.1` is another machine behind each agent.
 */
export function networkOf({ via }: Endpoint): string {
  if (via.kind === "direct" || via.agent === undefined) return "";
  return `@${via.agent.key}=${via.agent.value}`;
}

/**
 * One rule. Rules are asked in their order, and the first one that matches
 * decides; what none matches goes to the service's own endpoints.
 */
export interface Route {
  /** A host name, or `*.` and one: all names that end so. Absent: any. */
  readonly host?: string;
  /** What the path begins with, letter for letter; `/` is all of them. */
  readonly prefix: string;
  /** All of them have to be there with just that value. */
  readonly headers?: readonly HeaderMatch[];
  /** One at least. Requests are shared out by weight. */
  readonly to: readonly RouteTarget[];
}

export interface HeaderMatch {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
}

/** A TCP port of a service, maybe of this one. */
export interface RouteTarget {
  /** `namespace/name`. It need not be there (yet). */
  readonly service: string;
  readonly port: number;
  /** 1 to {@linkcode ROUTE_WEIGHT_MAX}. */
  readonly weight: number;
}

/** More are a table for a gateway. Each is asked for each request. */
export const ROUTES_PER_PORT_MAX = 128;
export const HEADERS_PER_ROUTE_MAX = 16;
export const TARGETS_PER_ROUTE_MAX = 16;

/** Of prefixes and of header values. */
export const ROUTE_TEXT_LENGTH_MAX = 1_024;

export const ROUTE_WEIGHT_MAX = 1_000_000;

/**
 * Whether `endpoint` serves `zone` by its topology hints, or, without hints, is
 * in it.
 */
export function isNear({ zone, forZones }: Endpoint, here: string): boolean {
  return forZones === undefined ? zone === here : forZones.includes(here);
}

/**
 * - `http`: HTTP, of whatever version the client speaks; HTTP/1.1 to endpoints.
 * - `h2c`: HTTP/2 without TLS, to endpoints as well.
 * - `grpc`: `h2c`, and gRPC in it.
 */
export type AppProtocol = "http" | "h2c" | "grpc";

/** As IANA, Kubernetes (KEP-3726) and Istio write them. */
const MEANINGS: ReadonlyMap<string, AppProtocol> = new Map([
  ["http", "http"],
  ["kubernetes.io/ws", "http"],
  ["h2c", "h2c"],
  ["http2", "h2c"],
  ["kubernetes.io/h2c", "h2c"],
  ["grpc", "grpc"],
]);

/**
 * @returns `undefined`: bytes, which the proxy carries without looking at them.
 *   That is also the answer for all that is inside TLS (`https`,
 *   `kubernetes.io/wss`), and for all of UDP.
 */
export function appProtocolOf(
  { protocol, appProtocol = "" }: Pick<ServicePort, "protocol" | "appProtocol">,
): AppProtocol | undefined {
  return protocol === "tcp" ? MEANINGS.get(appProtocol) : undefined;
}

/**
 * `namespace/name:PORT`, for UDP `namespace/name:PORT/udp`.
 *
 * @param key Of the service, as `keyOf` makes it.
 */
export function resourceNameOf(
  key: string,
  { port, protocol }: Pick<ServicePort, "port" | "protocol">,
): string {
  return `${key}:${port}${protocol === "udp" ? "/udp" : ""}`;
}

/** A set of services, asked by name. */
export interface Visibility {
  /** The same for all clients that see the same services. */
  readonly id: string;
  /** @param service `namespace/name`. */
  sees(service: string): boolean;
}

/** For nodes without a rule that restricts them. */
export const SEES_EVERYTHING: Visibility = Object.freeze({
  id: "*",
  sees: () => true,
});

/**
 * Listeners: where programs connect to, or, for gRPC clients, which listen
 * nowhere, what a name means; and the names by which gRPC clients ask.
 *
 * @module
 */

import { hostPort } from "../../../proto/peer/host_port.ts";
import {
  type AppProtocol,
  appProtocolOf,
  DEFAULT_NAMESPACE,
  keyOf,
  resourceNameOf,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import { canonicalIp } from "../../../proto/peer/ip_address.ts";
import { durationOf, pack } from "../../../proto/xds/any.ts";
import {
  type Address,
  type Any,
  HttpConnectionManager,
  type Listener,
  Router,
  TcpProxy,
  UdpProxyConfig,
  UdpRoute,
} from "../../../proto/xds/xds_messages.ts";
import { socketAddress } from "./assignments.ts";
import { ADS, once } from "./service_resources.ts";

/** Where programs find a service without a configured address. */
export const LISTEN_HOST = "127.0.0.1";

/**
 * Connections, and requests in HTTP, on which nothing happens. Envoy has an hour
 * for the one and five minutes for the other, which would end watches.
 */
export const IDLE_MS = 3_600_000;

/**
 * Attempts to reach an endpoint for one connection. Envoy may choose the same one
 * again until it is ejected (`clusters.ts`): these are enough to find the better
 * one of two, and to leave a dead zone.
 */
const CONNECT_ATTEMPTS = 10;

/** First wait between two attempts: other failures are counted meanwhile. */
const CONNECT_BACKOFF_MS = 10;
const CONNECT_BACKOFF_MAX_MS = 250;

/** The longest datagram. Envoy accepts 1,500 by default, and loses longer ones. */
const DATAGRAM_BYTES_MAX = 65_535;

/**
 * What `xds:///NAME` means to a gRPC client, without the name: a port has
 * several, and they mean the same.
 */
export function grpcListener(service: Service, port: ServicePort): Listener {
  const manager = httpManager(resourceNameOf(keyOf(service), port));
  return { apiListener: { apiListener: pack(HttpConnectionManager, manager) } };
}

/** The address at which a program on a machine with Envoy finds a port. */
export function envoyListener(service: Service, port: ServicePort): Listener {
  if (port.protocol === "udp") return udpListener(service, port);
  const application = appProtocolOf(port);
  return application === undefined
    ? tcpListener(service, port)
    : httpListener(service, port, application);
}

/** `tcp 127.0.0.1:80`: no two listeners can have the same. */
export function listenPlace(port: ServicePort): string {
  return `${port.protocol} ${pathText(port)}`;
}

/**
 * A port's name, and its place where a service says it: `NAME@127.0.0.1:8080`.
 *
 * Envoy does not move a listener to a place that another listener still has,
 * even if the same response removes that listener. It does end listeners before
 * it begins new ones, so a listener that moves gets another name.
 */
function envoyListenerName(service: Service, port: ServicePort): string {
  const name = resourceNameOf(keyOf(service), port);
  return port.listen === undefined ? name : `${name}@${pathText(port)}`;
}

function pathText({ listen, port }: ServicePort): string {
  const host = canonicalIp(listen?.host ?? LISTEN_HOST);
  return hostPort(host, listen?.port ?? port);
}

function tcpListener(service: Service, port: ServicePort): Listener {
  const name = resourceNameOf(keyOf(service), port);
  const isSticky = service.affinity.kind === "client-ip";
  const proxy = pack(TcpProxy, {
    statPrefix: name,
    cluster: name,
    idleTimeout: durationOf(IDLE_MS),
    maxConnectAttempts: { value: CONNECT_ATTEMPTS },
    backoffOptions: {
      baseInterval: durationOf(CONNECT_BACKOFF_MS),
      maxInterval: durationOf(CONNECT_BACKOFF_MAX_MS),
    },
    hashPolicy: isSticky ? [{ sourceIp: {} }] : undefined,
  });
  return filterListener(service, port, "tcp_proxy", proxy);
}

function httpListener(
  service: Service,
  port: ServicePort,
  application: AppProtocol,
): Listener {
  const name = resourceNameOf(keyOf(service), port);
  const manager = pack(HttpConnectionManager, {
    ...httpManager(name),
    // The client's address is that of its connection, whatever its headers say.
    useRemoteAddress: { value: true },
    generateRequestId: { value: false },
    streamIdleTimeout: durationOf(IDLE_MS),
    upgradeConfigs: application === "http"
      ? [{ upgradeType: "websocket" }]
      : undefined,
  });
  return filterListener(service, port, "http_connection_manager", manager);
}

/** The least that gRPC and Envoy take. */
function httpManager(name: string): HttpConnectionManager {
  return {
    statPrefix: name,
    rds: { configSource: ADS, routeConfigName: name },
    httpFilters: [{
      name: "envoy.filters.http.router",
      typedConfig: PLAIN_ROUTER(),
    }],
  };
}

/** The same for all clients. */
const PLAIN_ROUTER = once(() => pack(Router, {}));

function filterListener(
  service: Service,
  port: ServicePort,
  filter: string,
  typedConfig: Any,
): Listener {
  const filters = [{ name: `envoy.filters.network.${filter}`, typedConfig }];
  return {
    name: envoyListenerName(service, port),
    address: listenAddress(port),
    filterChains: [{ filters }],
  };
}

function udpListener(service: Service, port: ServicePort): Listener {
  const name = resourceNameOf(keyOf(service), port);
  const { policy: { udpIdleMs }, affinity } = service;
  const socketConfig = { maxRxDatagramSize: { value: DATAGRAM_BYTES_MAX } };
  const action = {
    name: "route",
    typedConfig: pack(UdpRoute, { cluster: name }),
  };
  return {
    name: envoyListenerName(service, port),
    address: listenAddress(port),
    udpListenerConfig: { downstreamSocketConfig: socketConfig },
    listenerFilters: [{
      name: "envoy.filters.udp_listener.udp_proxy",
      typedConfig: pack(UdpProxyConfig, {
        statPrefix: name,
        matcher: { onNoMatch: { action } },
        upstreamSocketConfig: socketConfig,
        idleTimeout: udpIdleMs === undefined
          ? undefined
          : durationOf(udpIdleMs),
        hashPolicies: affinity.kind === "client-ip"
          ? [{ sourceIp: true }]
          : undefined,
      }),
    }],
  };
}

function listenAddress({ listen, port, protocol }: ServicePort): Address {
  const host = listen?.host ?? LISTEN_HOST;
  return socketAddress(host, listen?.port ?? port, protocol);
}

// --- Names for gRPC clients --------------------------------------------------------

/** A name by which gRPC clients ask (`xds:///NAME`). */
export interface GrpcName {
  readonly name: string;
  /** When one name could mean two services, the lower rank wins. */
  readonly rank: number;
}

/**
 * All names of one TCP port for gRPC clients: `namespace/name`,
 * `name.namespace`, and in the default namespace `name`; each also with `:PORT`.
 *
 * Names of services have dots, so `a.b` is the service `a.b` of the default
 * namespace before it is `a` of the namespace `b`.
 */
export function grpcNames(
  service: Service,
  port: ServicePort,
): readonly GrpcName[] {
  const { namespace, name } = service;
  const forms: readonly GrpcName[] = [
    { name: keyOf(service), rank: 0 },
    ...namespace === DEFAULT_NAMESPACE ? [{ name, rank: 0 }] : [],
    { name: `${name}.${namespace}`, rank: 1 },
  ];
  const suffixes = port === defaultGrpcPort(service)
    ? ["", `:${port.port}`]
    : [`:${port.port}`];
  return forms.flatMap(({ name, rank }) =>
    suffixes.map((suffix) => ({ name: `${name}${suffix}`, rank }))
  );
}

/** The port of a name without one: the first for gRPC, or the first of TCP. */
function defaultGrpcPort({ ports }: Service): ServicePort | undefined {
  const tcp = ports.filter(({ protocol }) => protocol === "tcp");
  return tcp.find((port) => appProtocolOf(port) === "grpc") ?? tcp[0];
}

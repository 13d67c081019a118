/**
 * Clusters: how endpoints of one port are chosen and talked to.
 *
 * @module
 */

import {
  appProtocolOf,
  HEALTH_FALL,
  HEALTH_RISE,
  type HealthCheck as CatalogHealthCheck,
  keyOf,
  resourceNameOf,
  type Service,
  type ServicePort,
  WELL_STATUSES,
} from "../../catalog/model/model.ts";
import { durationOf, HTTP_OPTIONS_KEY, pack } from "../../../proto/xds/any.ts";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_LbPolicy,
  type HealthCheck,
  Http11ProxyUpstreamTransport,
  HttpProtocolOptions,
  type OutlierDetection,
  RawBuffer,
  type TransportSocket,
} from "../../../proto/xds/xds_messages.ts";
import type { Variant } from "./client_group.ts";
import { ADS, once } from "./service_resources.ts";

/**
 * Connections and requests at once, of one client to one cluster. The defaults
 * of Envoy and gRPC are 1,024, and 3 for Envoy's retries, which one dead
 * endpoint uses up. Our own proxies have no such limit, and no client has ports
 * for more than this.
 */
export const CIRCUIT_MAX = 65_536;

/** Least timeout of a connection through an agent (docs/services.md). */
const AGENT_CONNECT_MS_MIN = 2_000;

/**
 * With fewer healthy endpoints than this, in percent, all are used. Our own
 * proxies do so when no endpoint is healthy. Envoy's 50 would use ill ones
 * while others are well.
 */
const PANIC_PERCENT = 1;

/** An endpoint is ejected after so many failed connections in a row. */
const OUTLIER_FAILURES = 3;

/** It is ejected for so long, however often it happens: as by our own proxies. */
const OUTLIER_MS = 10_000;

/**
 * How often Envoy checks whether an ejection is over, which delays its end. It is
 * a timer for each cluster, and there may be 20,000 clusters.
 */
const OUTLIER_LOOK_MS = 5_000;

/** The cluster of one port. */
export function clusterOf(
  service: Service,
  port: ServicePort,
  variant: Variant,
): Cluster {
  const name = resourceNameOf(keyOf(service), port);
  const circuit = { value: CIRCUIT_MAX };
  const isEnvoy = variant.form === "envoy";
  const isProxied = variant.connectProxy !== undefined &&
    port.protocol === "tcp";
  return {
    ...plainCluster(name),
    connectTimeout: connectTimeout(service, variant),
    lbPolicy: lbPolicyOf(service, variant),
    circuitBreakers: {
      thresholds: [{
        maxConnections: circuit,
        maxPendingRequests: circuit,
        maxRequests: circuit,
        // gRPC does not read it.
        maxRetries: isEnvoy ? circuit : undefined,
      }],
    },
    transportSocket: isProxied
      ? THROUGH_PROXY[isEnvoy ? "envoy" : "grpc"]()
      : undefined,
    ...isEnvoy ? envoyFields(service, port, variant) : {},
  };
}

/**
 * Stands in for a cluster that does not exist, so that requests to it fail at
 * once: gRPC waits 15 s for a cluster that it does not receive.
 */
export function plainCluster(name: string): Cluster {
  return {
    name,
    type: Cluster_DiscoveryType.EDS,
    edsClusterConfig: { edsConfig: ADS },
  };
}

function connectTimeout(
  { policy: { dialTimeoutMs } }: Service,
  { connectProxy }: Variant,
): Cluster["connectTimeout"] {
  if (dialTimeoutMs === undefined) return undefined;
  const leastMs = connectProxy === undefined ? 0 : AGENT_CONNECT_MS_MIN;
  return durationOf(Math.max(dialTimeoutMs, leastMs));
}

function lbPolicyOf({ affinity, policy }: Service, { form }: Variant): number {
  // The hash is that of the source's address; see listeners and routes.
  if (affinity.kind === "client-ip") return Cluster_LbPolicy.RING_HASH;
  // gRPC refuses clusters with the other values unless environment variables
  // are set.
  if (form === "grpc") return Cluster_LbPolicy.ROUND_ROBIN;
  switch (policy.balance) {
    case "least-connections":
      return Cluster_LbPolicy.LEAST_REQUEST;
    case "random":
      return Cluster_LbPolicy.RANDOM;
    default:
      return Cluster_LbPolicy.ROUND_ROBIN;
  }
}

function envoyFields(
  service: Service,
  port: ServicePort,
  { connectProxy }: Variant,
): Cluster {
  const { health } = service.policy;
  // Envoy's checks do not go through the proxy, so all would seem ill; and they
  // ask the port that clients use, which need not be the one that can tell.
  const isChecked = health !== undefined && health.port === undefined &&
    port.protocol === "tcp" && connectProxy === undefined;
  const application = appProtocolOf(port);
  const isHttp2 = application === "h2c" || application === "grpc";
  return {
    commonLbConfig: { healthyPanicThreshold: { value: PANIC_PERCENT } },
    outlierDetection: port.protocol === "tcp" ? OUTLIERS : undefined,
    healthChecks: isChecked ? [healthCheckOf(health, service)] : undefined,
    // A removed endpoint is gone, even if its checks succeed.
    ignoreHealthOnHostRemoval: isChecked ? true : undefined,
    typedExtensionProtocolOptions: isHttp2
      ? { [HTTP_OPTIONS_KEY]: HTTP_2() }
      : undefined,
  };
}

/**
 * Ejects unreachable endpoints, whatever reachable ones answer. Without it a
 * dead endpoint would get its share of the connections until the catalog knows,
 * and a zone of dead endpoints all of them.
 *
 * Not for gRPC clients: they notice failed connections by themselves, and read
 * only the fields about answers (gRFC A50).
 */
const OUTLIERS: OutlierDetection = Object.freeze({
  splitExternalLocalOriginErrors: true,
  consecutiveLocalOriginFailure: { value: OUTLIER_FAILURES },
  interval: durationOf(OUTLIER_LOOK_MS),
  baseEjectionTime: durationOf(OUTLIER_MS),
  maxEjectionTime: durationOf(OUTLIER_MS),
  // All of them may be dead; then all are used, see above.
  maxEjectionPercent: { value: 100 },
  // The caller decides what an answer means.
  enforcingConsecutive_5xx: { value: 0 },
  enforcingSuccessRate: { value: 0 },
  enforcingLocalOriginSuccessRate: { value: 0 },
});

/** The checks of our own proxies, as far as Envoy has them. */
function healthCheckOf(
  check: CatalogHealthCheck,
  service: Service,
): HealthCheck {
  const { timeoutMs, intervalMs, rise, fall } = check;
  return {
    timeout: durationOf(timeoutMs),
    interval: durationOf(intervalMs),
    // Or the first client of the last minute would go to an ill one.
    noTrafficInterval: durationOf(intervalMs),
    unhealthyThreshold: { value: fall ?? HEALTH_FALL },
    healthyThreshold: { value: rise ?? HEALTH_RISE },
    ...healthQuestionOf(check, service),
  };
}

function healthQuestionOf(
  check: CatalogHealthCheck,
  { name, namespace }: Service,
): HealthCheck {
  // Envoy asks as its clients do, and these have no TLS towards endpoints.
  if (check.kind === "tcp" || check.tls !== undefined) {
    return { tcpHealthCheck: {} };
  }
  // Without a host Envoy takes the cluster's name, which none can be.
  const { host = `${name}.${namespace}` } = check;
  if (check.kind === "grpc") {
    return { grpcHealthCheck: { serviceName: check.service, authority: host } };
  }
  const { path, statuses = WELL_STATUSES } = check;
  const expectedStatuses = statuses
    .map(({ first, last }) => ({ start: first, end: last + 1 }));
  return { httpHealthCheck: { host, path, expectedStatuses } };
}

/**
 * Endpoints without a proxy's address in their metadata are dialed directly. What
 * is below is named to Envoy, which once needed that; C-core refuses the name.
 */
const THROUGH_PROXY = {
  envoy: once(() =>
    throughProxy({
      transportSocket: {
        name: "envoy.transport_sockets.raw_buffer",
        typedConfig: pack(RawBuffer, {}),
      },
    })
  ),
  grpc: once(() => throughProxy({})),
};

function throughProxy(
  transport: Http11ProxyUpstreamTransport,
): TransportSocket {
  return {
    name: "envoy.transport_sockets.http_11_proxy",
    typedConfig: pack(Http11ProxyUpstreamTransport, transport),
  };
}

const HTTP_2 = once(() =>
  pack(HttpProtocolOptions, {
    explicitHttpConfig: { http2ProtocolOptions: {} },
  })
);

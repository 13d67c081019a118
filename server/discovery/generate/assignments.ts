/**
 * Load assignments: the endpoints of one port, as far as a client can reach
 * them.
 *
 * gRPC clients and Envoy are told those that are to get connections and no
 * others, by the rule that our own proxies have (`usableTargets`): told of the
 * rest they would use them in a panic. Node proxies are told all.
 *
 * @module
 */

import {
  endpointForm,
  TUNNEL_METADATA,
} from "../../../catalog/discovery_form.ts";
import {
  DEFAULT_WEIGHT,
  type Endpoint,
  type EndpointState,
  keyOf,
  portOf,
  type Service,
  type ServicePort,
} from "../../../catalog/model/model.ts";
import { resourceNameOf } from "../../../catalog/model/resource_names.ts";
import {
  type Target,
  targetsIn,
  usableTargets,
} from "../../../catalog/snapshot.ts";
import { isNear } from "../../../catalog/model/zones.ts";
import { isIpAddress } from "../../../proto/peer/ip_address.ts";
import { pack } from "../../../proto/xds/any.ts";
import { PROXY_ADDRESS_KEY } from "../../../proto/xds/extension_names.ts";
import {
  Address,
  type ClusterLoadAssignment,
  HealthStatus,
  type LbEndpoint,
  type Locality,
  type LocalityLbEndpoints,
  type Metadata,
  SocketAddress_Protocol,
} from "../../../proto/xds/xds_messages.ts";
import { structOf } from "../../../proto/xds/struct_data.ts";
import type { ConnectProxy, Variant } from "./audience.ts";
import { ownProxies } from "./own_proxies.ts";
import { leftOutText, type WhyLeftOut } from "./left_out.ts";
import type { ServiceInput } from "./service_resources.ts";
import { virtualAddressOfEndpoint } from "./virtual_addresses.ts";

/** An assignment, and what it lacks. */
export interface Assigned {
  readonly assignment: ClusterLoadAssignment;
  /** For people; absent: nothing. */
  readonly leftOut?: string;
}

/** The assignment of one port. */
export function assignmentOf(
  { service, endpoints }: ServiceInput,
  port: ServicePort,
  variant: Variant,
): Assigned {
  const clusterName = resourceNameOf(keyOf(service), port);
  if (variant.form === "proxy") {
    return {
      assignment: {
        clusterName,
        endpoints: proxyEndpoints(endpoints, port),
      },
    };
  }
  const reasons = new Map<WhyLeftOut, Target[]>();
  const targets = targetsIn(endpoints, port.name);
  const reachable = targets.filter((target) => {
    const why = whyLeftOut(target, port, variant);
    if (why === undefined) return true;
    const others = reasons.get(why);
    if (others === undefined) reasons.set(why, [target]);
    else others.push(target);
    return false;
  });
  const usable = usableTargets(reachable);
  const proxies = proxiesOf(usable, variant);
  return {
    assignment: {
      clusterName,
      endpoints: byPriority(usable, variant)
        .flatMap((tier, priority) =>
          localitiesOf(tier, priority, service, port, { variant, proxies })
        ),
    },
    ...reasons.size === 0
      ? {}
      : { leftOut: leftOutText(reasons, targets.length) },
  };
}

/** In the place of an assignment that is not there. */
export function noEndpoints(clusterName: string): ClusterLoadAssignment {
  return { clusterName, endpoints: [] };
}

// --- For node proxies ------------------------------------------------------------

/** Everything, in one locality so that the order stays. */
function proxyEndpoints(
  endpoints: readonly Endpoint[],
  { name, protocol }: ServicePort,
): readonly LocalityLbEndpoints[] {
  const lbEndpoints = endpoints.flatMap((endpoint) => {
    const port = portOf(endpoint, name);
    return port === undefined ? [] : [proxyEndpoint(endpoint, port, protocol)];
  });
  return lbEndpoints.length === 0
    ? []
    : [{ locality: {}, loadBalancingWeight: { value: 1 }, lbEndpoints }];
}

/** For those who read no metadata of ours; the whole truth is there. */
const HEALTH: Readonly<Record<EndpointState, number>> = {
  ready: HealthStatus.HEALTHY,
  serving: HealthStatus.DRAINING,
  terminating: HealthStatus.DRAINING,
  unready: HealthStatus.UNHEALTHY,
};

function proxyEndpoint(
  endpoint: Endpoint,
  portValue: number,
  protocol: ServicePort["protocol"],
): LbEndpoint {
  const form = endpointForm(endpoint);
  return {
    endpoint: { address: socketAddress(endpoint.address, portValue, protocol) },
    healthStatus: HEALTH[endpoint.state],
    ...form === undefined
      ? {}
      : { metadata: { filterMetadata: { [TUNNEL_METADATA]: structOf(form) } } },
    ...weightOf(endpoint),
  };
}

// --- For gRPC clients and Envoy --------------------------------------------------

function whyLeftOut(
  { address, endpoint: { via } }: Target,
  { protocol }: ServicePort,
  { connectProxy }: Variant,
): WhyLeftOut | undefined {
  if (via.kind === "agent") {
    if (protocol === "udp") return "udp-behind-agent";
    return connectProxy === undefined ? "behind-agent" : undefined;
  }
  return isIpAddress(address) ? undefined : "host-name";
}

/** How endpoints are reached. */
interface Reach {
  readonly variant: Variant;
  /** By what of an endpoint that needs a proxy. */
  readonly proxies: (endpoint: string) => ConnectProxy;
}

function proxiesOf(
  targets: readonly Target[],
  { form, connectProxy }: Variant,
): Reach["proxies"] {
  if (form !== "grpc" || connectProxy?.more === undefined) {
    return () => connectProxy!;
  }
  const names = new Set<string>();
  for (const { endpoint, port } of targets) {
    const virtual = virtualAddressOfEndpoint(endpoint);
    if (virtual !== undefined) names.add(`${virtual} ${port}`);
  }
  const own = ownProxies(names, connectProxy);
  return (name) => own.get(name) ?? connectProxy;
}

/** Those of one priority. */
interface Tier {
  readonly targets: readonly Target[];
  /** Tells it from others: gRPC knows children by their locality. */
  readonly locality: Locality;
}

/** Tiers, none of them empty: a gap between priorities is refused. */
function byPriority(
  targets: readonly Target[],
  { zone }: Variant,
): readonly Tier[] {
  const isIn = ({ endpoint }: Target) =>
    zone !== undefined && isNear(endpoint, zone);
  const near = targets.filter(isIn);
  const far = targets.filter((target) => !isIn(target));
  const tiers: readonly Tier[] = [
    { targets: near, locality: { zone } },
    { targets: far, locality: {} },
  ];
  return tiers.filter(({ targets }) => targets.length > 0);
}

/**
 * One locality, so that everybody takes turns among all. But gRPC's round robin
 * knows no weights of endpoints, only of localities: there, where weights count,
 * those of one weight are a locality.
 */
function localitiesOf(
  { targets: all, locality }: Tier,
  priority: number,
  { policy }: Service,
  { protocol }: ServicePort,
  { variant: { form }, proxies }: Reach,
): readonly LocalityLbEndpoints[] {
  const isWeighted = policy.balance === "weighted";
  const groups = isWeighted && form === "grpc"
    ? Map.groupBy(all, ({ endpoint }) => endpoint.weight)
    : new Map([[0, all]]);
  return [...groups].map(([weight, targets]) => ({
    locality: weight === 0
      ? locality
      : { ...locality, subZone: `weight-${weight}` },
    lbEndpoints: targets.map((target) =>
      lbEndpointOf(target, protocol, isWeighted, proxies)
    ),
    loadBalancingWeight: { value: Math.max(1, weight) * targets.length },
    ...priority === 0 ? {} : { priority },
  }));
}

function lbEndpointOf(
  { address, port, endpoint }: Target,
  protocol: ServicePort["protocol"],
  isWeighted: boolean,
  proxies: (endpoint: string) => ConnectProxy,
): LbEndpoint {
  const virtual = virtualAddressOfEndpoint(endpoint);
  const name = `${virtual} ${port}`;
  return {
    endpoint: { address: socketAddress(virtual ?? address, port, protocol) },
    healthStatus: HealthStatus.HEALTHY,
    ...virtual === undefined ? {} : { metadata: throughProxy(proxies(name)) },
    ...isWeighted ? weightOf(endpoint) : {},
  };
}

/** One for each proxy: there are as many as nodes, and endpoints are more. */
const proxyMetadata = new WeakMap<ConnectProxy, Metadata>();

function throughProxy(proxy: ConnectProxy): Metadata {
  let metadata = proxyMetadata.get(proxy);
  if (metadata === undefined) {
    const address = socketAddress(proxy.host, proxy.port, "tcp");
    metadata = {
      typedFilterMetadata: { [PROXY_ADDRESS_KEY]: pack(Address, address) },
    };
    proxyMetadata.set(proxy, metadata);
  }
  return metadata;
}

// --- For all ---------------------------------------------------------------------

function socketAddress(
  address: string,
  portValue: number,
  protocol: ServicePort["protocol"],
): Address {
  return {
    socketAddress: {
      ...protocol === "udp" ? { protocol: SocketAddress_Protocol.UDP } : {},
      address,
      portValue,
    },
  };
}

function weightOf(
  { weight }: Endpoint,
): Pick<LbEndpoint, "loadBalancingWeight"> {
  return weight === DEFAULT_WEIGHT
    ? {}
    : { loadBalancingWeight: { value: weight } };
}

/**
 * Load assignments: the endpoints of one port, as far as a client can reach
 * them.
 *
 * gRPC clients and Envoy receive only the endpoints that are to get
 * connections, by the rule of our own proxies (`usableTargets`): in panic mode
 * they would use the others too.
 *
 * @module
 */

import {
  DEFAULT_WEIGHT,
  type Endpoint,
  isNear,
  keyOf,
  resourceNameOf,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import {
  type Target,
  targetsIn,
  usableTargets,
} from "../../catalog/snapshot.ts";
import { memoized } from "../../catalog/model/memo.ts";
import { isIpAddress } from "../../../proto/peer/ip_address.ts";
import { pack, PROXY_ADDRESS_KEY } from "../../../proto/xds/any.ts";
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
import type { ConnectProxy, Variant } from "./client_group.ts";
import type { ServiceInput } from "./service_resources.ts";
import { virtualAddressOfEndpoint } from "./virtual_addresses.ts";
import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import { connectHost } from "../../../proto/xds/relay_fields.ts";

/** Why an endpoint is omitted. */
type OmissionReason = "host-name" | "behind-agent" | "udp-behind-agent";

/** A load assignment, and the endpoints that are missing in it. */
export interface Assigned {
  readonly assignment: ClusterLoadAssignment;
  /** A text for people; absent: nothing is omitted. */
  readonly omitted?: string;
}

/** The assignment of one port. */
export function assignmentOf(
  { service, endpoints }: ServiceInput,
  port: ServicePort,
  variant: Variant,
): Assigned {
  const clusterName = resourceNameOf(keyOf(service), port);
  const reasons = new Map<OmissionReason, Target[]>();
  const targets = targetsIn(endpoints, port.name);
  const reachable = targets.filter((target) => {
    const why = omissionReasonOf(target, port, variant);
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
      : { omitted: omittedText(reasons, targets.length) },
  };
}

/** Stands in for an assignment that does not exist. */
export function noEndpoints(clusterName: string): ClusterLoadAssignment {
  return { clusterName, endpoints: [] };
}

/** Why endpoints are omitted, and what people can do about it. */
const OMISSION_TEXTS: Readonly<Record<OmissionReason, string>> = {
  "host-name": "EDS carries IP addresses only; name them in the catalog",
  "behind-agent": "only agents reach them, and this client has no CONNECT " +
    "proxy; let it come by way of tunnel agent --xds-listen with " +
    "--connect-listen, and set tunnel.http_11_proxy in its node's metadata",
  "udp-behind-agent":
    "only agents reach them, and a CONNECT proxy carries no " +
    "datagrams; use tunnel proxy",
};

/** `2 of 3 endpoints left out (web.internal, …): …`. */
function omittedText(
  reasons: ReadonlyMap<OmissionReason, readonly Target[]>,
  count: number,
): string {
  return [...reasons].map(([why, targets]) => {
    const [first] = targets;
    const more = targets.length > 1 ? ", …" : "";
    return `${targets.length} of ${count} endpoints left out ` +
      `(${first!.address}${more}): ${OMISSION_TEXTS[why]}`;
  }).join("; ");
}

function omissionReasonOf(
  { address, endpoint: { via } }: Target,
  { protocol }: ServicePort,
  { connectProxy }: Variant,
): OmissionReason | undefined {
  if (via.kind === "agent") {
    if (protocol === "udp") return "udp-behind-agent";
    return connectProxy === undefined ? "behind-agent" : undefined;
  }
  return isIpAddress(address) ? undefined : "host-name";
}

/** How endpoints are reached. */
interface EndpointRoute {
  readonly variant: Variant;
  /** The proxy of an endpoint that needs one. */
  readonly proxies: (endpoint: string) => ConnectProxy;
}

function proxiesOf(
  targets: readonly Target[],
  { form, connectProxy }: Variant,
): EndpointRoute["proxies"] {
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

/** The endpoints of one priority. */
interface Tier {
  readonly targets: readonly Target[];
  /** Distinguishes it from others: gRPC knows children by their locality. */
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
 * One locality, so that clients take turns among all endpoints. gRPC's round
 * robin knows weights of localities only: where weights count, gRPC receives
 * one locality for the endpoints of each weight.
 */
function localitiesOf(
  { targets: all, locality }: Tier,
  priority: number,
  { policy }: Service,
  { protocol }: ServicePort,
  { variant: { form }, proxies }: EndpointRoute,
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
    priority: priority === 0 ? undefined : priority,
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
    metadata: virtual === undefined ? undefined : throughProxy(proxies(name)),
    loadBalancingWeight: isWeighted ? weightOf(endpoint) : undefined,
  };
}

/** There is one for each node, and there are more endpoints. */
const throughProxy = memoized(({ host, port }: ConnectProxy): Metadata => {
  const address = socketAddress(host, port, "tcp");
  return {
    typedFilterMetadata: { [PROXY_ADDRESS_KEY]: pack(Address, address) },
  };
});

// --- For all ---------------------------------------------------------------------

export function socketAddress(
  address: string,
  portValue: number,
  protocol: ServicePort["protocol"],
): Address {
  return {
    socketAddress: {
      protocol: protocol === "udp" ? SocketAddress_Protocol.UDP : undefined,
      address,
      portValue,
    },
  };
}

function weightOf(
  { weight }: Endpoint,
): LbEndpoint["loadBalancingWeight"] {
  return weight === DEFAULT_WEIGHT ? undefined : { value: weight };
}

/**
 * The address of `proxy` for each endpoint. An endpoint keeps its address when
 * others come or go, unless two endpoints wanted the same.
 *
 * @param endpoints Their virtual addresses; each once.
 */
export function ownProxies(
  endpoints: Iterable<string>,
  proxy: ConnectProxy,
): ReadonlyMap<string, ConnectProxy> {
  const all = addressesOf(proxy);
  const own = new Map<string, ConnectProxy>();
  const taken = new Set<number>();
  for (const endpoint of [...endpoints].sort()) {
    let at = fnv1a(endpoint) % all.length;
    // With more endpoints than addresses, several endpoints share one.
    if (taken.size < all.length) {
      while (taken.has(at)) at = (at + 1) % all.length;
    }
    taken.add(at);
    own.set(endpoint, all[at]!);
  }
  return own;
}

/**
 * All addresses of a proxy; kept, because the results for each address are kept
 * as well.
 */
const addressesOf = memoized(
  (proxy: ConnectProxy): readonly ConnectProxy[] => {
    const { port, more = 0 } = proxy;
    const others = Array.from(
      { length: more },
      (_, index): ConnectProxy => ({ host: connectHost(index + 1), port }),
    );
    return [proxy, ...others];
  },
);

/**
 * Whether clients would take a resource: what is made of a catalog is looked at
 * by this in tests, because no client may refuse it.
 *
 * The published rules of single fields are `published_rules.ts`'
 * business. Here are those between fields, as Envoy 1.40, grpc-go 1.85, C-core
 * 1.85 and grpc-js-xds 1.14 have them, all at once: a resource that one kind of
 * client would refuse is not made for another kind either.
 *
 * @module
 */

import { decodeAny, unpack } from "../../../../proto/xds/any.ts";
import type { MessageKind } from "../../../../proto/xds/message_kind.ts";
import { isIpAddress } from "../../../../proto/peer/ip_address.ts";
import type { Resource, ResourceKind } from "../../../../proto/xds/resource.ts";
import {
  RESOURCE_MESSAGES,
  type ResourceMessages,
} from "../../../../proto/xds/resource_messages.ts";
import {
  Cluster,
  Cluster_DiscoveryType,
  ClusterLoadAssignment,
  type ConfigSource,
  HttpConnectionManager,
  Listener,
  type RouteAction,
  RouteConfiguration,
  Router,
  SocketAddress_Protocol,
  TcpProxy,
  type TypedExtensionConfig,
  UdpProxyConfig,
} from "../../../../proto/xds/xds_messages.ts";
import { assignmentProblems } from "./assignment_rules.ts";
import { brokenRule } from "./published_rules.ts";

/** Kinds that other makes of clients know. */
export type XdsKind = Exclude<ResourceKind, "service">;

/**
 * The fault of a resource, in one sentence that names it and a field.
 *
 * @returns `undefined` when there is none.
 */
export function problemOf<Kind extends XdsKind>(
  kind: Kind,
  message: ResourceMessages[Kind],
): string | undefined {
  const { typeUrl } = RESOURCE_MESSAGES[kind];
  const type = typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
  const problem = brokenRule(type, message) ??
    RULES[kind](message).next().value;
  if (problem === undefined) return undefined;
  const name = JSON.stringify(nameOf(message));
  return `${type.slice(type.lastIndexOf(".") + 1)} ${name}: ${problem}`;
}

/** @throws {Error} When a client would refuse it. */
export function assertTaken({ kind, name, any }: Resource): void {
  if (kind === "service") return;
  const message = decodeAny<ResourceMessages[XdsKind]>(
    RESOURCE_MESSAGES[kind] as MessageKind<ResourceMessages[XdsKind]>,
    any,
  );
  const problem = message && problemOf(kind, message);
  if (message === undefined || problem !== undefined) {
    throw new Error(`Clients refuse ${kind} ${name}: ${problem}`);
  }
}

function nameOf(message: ResourceMessages[XdsKind]): string {
  const { name, clusterName } = message as Cluster & ClusterLoadAssignment;
  return name ?? clusterName ?? "";
}

type Rules<Kind extends XdsKind> = (
  message: ResourceMessages[Kind],
) => Iterator<string, undefined>;

const RULES: { readonly [Kind in XdsKind]: Rules<Kind> } = {
  cluster: clusterProblems,
  endpoints: assignmentProblems,
  listener: listenerProblems,
  route: routeProblems,
};

function* clusterProblems(
  { type, edsClusterConfig, loadAssignment }: Cluster,
): Generator<string, undefined> {
  if (type === Cluster_DiscoveryType.EDS) {
    if (edsClusterConfig === undefined) {
      yield "eds_cluster_config has to be set for type EDS";
    }
    yield* sourceProblems(
      edsClusterConfig?.edsConfig,
      "eds_cluster_config.eds_config",
    );
  } else if (loadAssignment === undefined) {
    yield "load_assignment has to be set for a type other than EDS";
  }
}

/**
 * Envoy refuses `self` for endpoints; gRPC refuses all sources but `ads` and
 * `self`.
 */
function* sourceProblems(
  source: ConfigSource | undefined,
  path: string,
): Generator<string, undefined> {
  if (source?.ads === undefined) yield `${path} has to be ads`;
}

function* listenerProblems(
  listener: Listener,
): Generator<string, undefined> {
  if ((listener.name ?? "") === "") yield "name is empty";
  if (listener.apiListener !== undefined) {
    return yield* apiListenerProblems(listener);
  }
  const socket = listener.address?.socketAddress;
  if (socket === undefined) {
    yield "address has to be set unless api_listener is";
  }
  const { address = "", portValue = 0, protocol } = socket ?? {};
  const isHere = isIpAddress(address);
  if (!isHere) yield `address is ${JSON.stringify(address)}, which is no IP`;
  if (portValue === 0) yield "address.socket_address.port_value is 0";
  if (protocol === SocketAddress_Protocol.UDP) {
    yield* udpProblems(listener.listenerFilters ?? []);
  } else {
    yield* chainProblems(listener);
  }
}

function* apiListenerProblems(
  { apiListener }: Listener,
): Generator<string, undefined> {
  const path = "api_listener.api_listener";
  const manager = unpack(HttpConnectionManager, apiListener?.apiListener);
  if (manager === undefined) yield `${path} has to be an HttpConnectionManager`;
  else yield* managerProblems(manager, path);
}

function* chainProblems(
  { filterChains = [] }: Listener,
): Generator<string, undefined> {
  if (filterChains.length === 0) yield "filter_chains is empty";
  for (const [index, { filters = [] }] of filterChains.entries()) {
    const path = `filter_chains[${index}].filters`;
    const last = filters.at(-1)?.typedConfig;
    const manager = unpack(HttpConnectionManager, last);
    if (manager !== undefined) yield* managerProblems(manager, path);
    else if (last?.typeUrl !== TcpProxy.typeUrl) {
      yield `${path} has to end with a TcpProxy or an HttpConnectionManager`;
    }
  }
}

function* udpProblems(
  filters: readonly TypedExtensionConfig[],
): Generator<string, undefined> {
  if (filters.at(-1)?.typedConfig?.typeUrl !== UdpProxyConfig.typeUrl) {
    yield "listener_filters of a UDP listener has to end with a UdpProxyConfig";
  }
}

function* managerProblems(
  { httpFilters = [], rds, xffNumTrustedHops = 0 }: HttpConnectionManager,
  path: string,
): Generator<string, undefined> {
  if (httpFilters.at(-1)?.typedConfig?.typeUrl !== Router.typeUrl) {
    yield `http_filters in ${path} has to end with a Router`;
  }
  if (xffNumTrustedHops !== 0) yield `xff_num_trusted_hops in ${path} is not 0`;
  if (rds === undefined) return undefined;
  yield* sourceProblems(rds.configSource, `rds.config_source in ${path}`);
  if ((rds.routeConfigName ?? "") === "") {
    yield `rds.route_config_name in ${path} is empty`;
  }
}

/** Weights of all clusters of a route together. */
const WEIGHTS_MAX = 0xffff_ffff;

/** What clients demand of routes, in the order of their fields. */
function* routeProblems(
  { name = "", virtualHosts = [] }: RouteConfiguration,
): Generator<string, undefined> {
  if (name === "") yield "name is empty";
  const names = new Set<string>();
  const domains = new Set<string>();
  for (const [index, host] of virtualHosts.entries()) {
    const path = `virtual_hosts[${index}]`;
    if (names.has(host.name ?? "")) yield `${path}.name is there already`;
    names.add(host.name ?? "");
    for (const domain of host.domains ?? []) {
      const key = domain.toLowerCase();
      const said = `${path}.domains has ${JSON.stringify(domain)}, which`;
      if (!isDomain(key)) yield `${said} is no domain`;
      if (domains.has(key)) yield `${said} is there already`;
      domains.add(key);
    }
    for (const [at, { route }] of (host.routes ?? []).entries()) {
      if (route === undefined) continue;
      const problem = weightProblem(route);
      if (problem !== undefined) yield `${path}.routes[${at}].route.${problem}`;
    }
  }
}

/** With at most one `*`, at the beginning or the end. */
function isDomain(text: string): boolean {
  const star = text.indexOf("*");
  return text !== "" && (star < 0 || star === text.lastIndexOf("*")) &&
    (star <= 0 || star === text.length - 1);
}

function weightProblem({ weightedClusters }: RouteAction): string | undefined {
  if (weightedClusters === undefined) return undefined;
  let sum = 0;
  for (const { name = "", weight } of weightedClusters.clusters ?? []) {
    if (name === "") return "weighted_clusters has a cluster without a name";
    // Envoy and gRPC differ about what a missing one means.
    if (weight === undefined) {
      return `weighted_clusters has no weight for ${JSON.stringify(name)}`;
    }
    sum += weight.value ?? 0;
  }
  return sum > 0 && sum <= WEIGHTS_MAX
    ? undefined
    : `weighted_clusters has weights of ${sum} together`;
}

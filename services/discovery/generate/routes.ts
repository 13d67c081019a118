/**
 * Route configurations: which requests of a port go to which cluster.
 *
 * A port's routes match in their order, and each may be for one host. xDS first
 * chooses the most specific virtual host and then matches only its routes; so each
 * named host gets a virtual host with all routes that could match it, in their
 * order, which has the same effect.
 *
 * grpc-go uses new routes a moment before its picker knows the clusters that it has
 * fetched for them, and calls of that moment fail (`unknown cluster selected for
 * RPC`). So it first receives its old routes, followed by others that no request
 * reaches: it fetches their clusters, too (`interimRoutesOf`).
 *
 * @module
 */

import {
  keyOf,
  resourceNameOf,
  type Route,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import {
  decodeAny,
  durationOf,
  pack,
  PREVIOUS_HOSTS,
  PREVIOUS_PRIORITIES,
} from "../../../proto/xds/any.ts";
import {
  PreviousHostsPredicate,
  PreviousPrioritiesConfig,
  type RetryPolicy,
  type Route as RouteMessage,
  type RouteAction,
  RouteConfiguration,
  type RouteMatch,
  type VirtualHost,
} from "../../../proto/xds/xds_messages.ts";
import type { Variant } from "./client_group.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { PairMemo } from "../../catalog/model/memo.ts";
import { type ByName, changedNames } from "../view/view.ts";
import { once, resourceOf } from "./service_resources.ts";

/** Attempts for one request, each at another endpoint: as by our own proxies. */
const REQUEST_ATTEMPTS = 4;

/** Endpoints of one zone that are tried before another zone. */
const ATTEMPTS_IN_ZONE = 2;

/** Draws of an endpoint until one comes that was not tried for the request. */
const DRAWS_MAX = 10;

/** The parts of a catalog's route that say where requests go. */
type Targets = Route["to"];

/** The route configuration of one port. */
export function routesOf(
  service: Service,
  port: ServicePort,
  { form }: Variant,
): RouteConfiguration {
  const { routes = [] } = port;
  const own: Route = {
    prefix: "/",
    to: [{ service: keyOf(service), port: port.port, weight: 1 }],
  };
  const all = [...routes, own];
  const hosts = new Set(routes.flatMap(({ host }) => host ?? []));
  const name = resourceNameOf(keyOf(service), port);
  return {
    name,
    virtualHosts: [...hosts, undefined].map((host): VirtualHost => ({
      name: host ?? name,
      domains: domainsOf(host, form),
      routes: all.filter((route) => isMeantFor(route, host))
        .map((route) => routeMessage(route, form)),
    })),
    ignorePortInHostMatching: form === "envoy" ? true : undefined,
  };
}

/** Clusters that requests of a port may go to: names, each once. */
export function clustersOfRoutes(
  service: Service,
  port: ServicePort,
): readonly string[] {
  const { routes = [] } = port;
  const names = routes.flatMap(({ to }) => to.map(clusterName));
  return [...new Set([resourceNameOf(keyOf(service), port), ...names])];
}

/** Those of {@linkcode clustersOfRoutes} that are not the service's own. */
export function targetsOfRoutes(
  service: Service,
  port: ServicePort,
): readonly string[] {
  const own = new Set(
    service.ports.filter(({ protocol }) => protocol === "tcp")
      .map((port) => resourceNameOf(keyOf(service), port)),
  );
  return clustersOfRoutes(service, port).filter((name) => !own.has(name));
}

/** Whether requests for `host`, or for none that is named, could be its. */
function isMeantFor(route: Route, host: string | undefined): boolean {
  if (route.host === undefined || route.host === host) return true;
  return host !== undefined && route.host.startsWith("*.") &&
    host.endsWith(route.host.slice(1));
}

/** gRPC's names may end in a port, which it does not leave out. */
function domainsOf(
  host: string | undefined,
  form: Variant["form"],
): readonly string[] {
  if (host === undefined) return ["*"];
  return form === "envoy" || host.startsWith("*.")
    ? [host]
    : [host, `${host}:*`];
}

function routeMessage(
  { prefix, headers = [], to }: Route,
  form: Variant["form"],
): RouteMessage {
  const match: RouteMatch = {
    prefix,
    headers: headers.map(({ name, value }) => ({
      name,
      stringMatch: { exact: value },
    })),
  };
  return { match, route: { ...clusterOf(to), ...fieldsFor(form) } };
}

function clusterOf(to: Targets): RouteAction {
  const [only, ...others] = to;
  if (only !== undefined && others.length === 0) {
    return { cluster: clusterName(only) };
  }
  return {
    weightedClusters: {
      clusters: to.map((target) => ({
        name: clusterName(target),
        weight: { value: target.weight },
      })),
    },
  };
}

function clusterName({ service, port }: Targets[number]): string {
  return resourceNameOf(service, { port, protocol: "tcp" });
}

/** The hash of a request counts only where the cluster has affinity. */
function fieldsFor(form: Variant["form"]): RouteAction {
  if (form === "grpc") {
    // A program is one client; it cannot hash by its own address.
    return { hashPolicy: [{ filterState: { key: "io.grpc.channel_id" } }] };
  }
  return {
    hashPolicy: [{ connectionProperties: { sourceIp: true } }],
    // Envoy would end every request after 15 s.
    timeout: durationOf(0),
    retryPolicy: RETRIES(),
  };
}

/** The same for all clients. */
const RETRIES = once((): RetryPolicy => ({
  // In these cases no endpoint has received anything. A gRPC status UNAVAILABLE
  // is not among them: the called method may have returned it.
  retryOn: "connect-failure,refused-stream,reset-before-request",
  numRetries: { value: REQUEST_ATTEMPTS - 1 },
  retryPriority: {
    name: PREVIOUS_PRIORITIES,
    typedConfig: pack(PreviousPrioritiesConfig, {
      updateFrequency: ATTEMPTS_IN_ZONE,
    }),
  },
  retryHostPredicate: [{
    name: PREVIOUS_HOSTS,
    typedConfig: pack(PreviousHostsPredicate, {}),
  }],
  hostSelectionRetryMaxAttempts: DRAWS_MAX,
}));

/**
 * The routes for the time between two states; for each route, the clusters that
 * are new in it.
 */
export interface InterimRoutes {
  readonly routes: ByName;
  readonly clusters: ReadonlyMap<string, readonly string[]>;
}

const interim = new PairMemo<ByName, ByName, InterimRoutes | null>(
  (before, after) => make(before, after) ?? null,
);

/**
 * The routes to send between two states; the same object for the same pair.
 *
 * @returns Nothing when no route leads to a new cluster.
 */
export function interimRoutesOf(
  before: ByName,
  after: ByName,
): InterimRoutes | undefined {
  return interim.of(before, after) ?? undefined;
}

function make(before: ByName, after: ByName): InterimRoutes | undefined {
  const clusters = new Map<string, readonly string[]>();
  const resources: Resource[] = [];
  for (const name of changedNames(before, after)) {
    const old = before.get(name);
    const more = newIn(old, after.get(name));
    const resource = more.length === 0 ? undefined : announcing(old!, more);
    if (resource === undefined) continue;
    clusters.set(name, more);
    resources.push(resource);
  }
  if (resources.length === 0) return undefined;
  const routes = new Map(before);
  for (const resource of resources) routes.set(resource.name, resource);
  return { routes, clusters };
}

function newIn(
  before: Resource | undefined,
  after: Resource | undefined,
): readonly string[] {
  if (before?.clusters === undefined) return [];
  const had = new Set(before.clusters);
  return after?.clusters?.filter((name) => !had.has(name)) ?? [];
}

/** Each virtual host ends with a route for all requests: none reaches the next. */
function announcing(
  before: Resource,
  more: readonly string[],
): Resource | undefined {
  const message = decodeAny<RouteConfiguration>(RouteConfiguration, before.any);
  if (message === undefined) return undefined;
  const routes = more.map((cluster) => ({
    match: { prefix: "/" },
    route: { cluster },
  }));
  const announced: RouteConfiguration = {
    ...message,
    virtualHosts: (message.virtualHosts ?? []).map((host) => ({
      ...host,
      routes: [...host.routes ?? [], ...routes],
    })),
  };
  const clusters = [...before.clusters ?? [], ...more];
  return resourceOf("route", announced, clusters);
}

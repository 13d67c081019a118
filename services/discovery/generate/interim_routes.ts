/**
 * Route configurations that name clusters before they lead to them, for clients
 * that use a route before they know its cluster.
 *
 * grpc-go does: it uses new routes a moment before its picker knows the clusters
 * that it has fetched for them, and calls of that moment fail (`unknown cluster
 * selected for RPC`). So it first receives its old routes, followed by others that
 * no request reaches: it fetches their clusters, too.
 *
 * @module
 */

import { decodeAny } from "../../../proto/xds/any.ts";
import { RouteConfiguration } from "../../../proto/xds/xds_messages.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { type ByName, changedNames, PairMemo } from "../view/view.ts";
import { resourceOf } from "./resource_of.ts";

/** Routes between two states, and by route the clusters that it names anew. */
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
  return resourceOf("route", announced, "grpc", clusters);
}

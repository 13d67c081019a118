/**
 * Route configurations that name clusters before they lead to them, for clients
 * that would go by a route before they know its cluster.
 *
 * That is grpc-go: it goes by new routes a moment before the clusters that it has
 * fetched for them are known to what picks one, and calls of that moment fail
 * (`unknown cluster selected for RPC`). So it is first told its old routes, with
 * others behind them that nothing reaches: it fetches their clusters, too.
 *
 * @module
 */

import { decodeAny } from "../../../proto/xds/any.ts";
import { RouteConfiguration } from "../../../proto/xds/xds_messages.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { type ByName, changedNames } from "../view/view.ts";
import { resourceOf } from "./resource_of.ts";

/** What is told in between, and which clusters are new to which routes. */
export interface InterimRoutes {
  readonly routes: ByName;
  readonly clusters: ReadonlyMap<string, readonly string[]>;
}

const known = new WeakMap<ByName, WeakMap<ByName, InterimRoutes | null>>();

/**
 * What to tell between two states of routes; the same for all who ask.
 *
 * @returns Nothing when no route leads anywhere new.
 */
export function interimRoutesOf(
  before: ByName,
  after: ByName,
): InterimRoutes | undefined {
  let byAfter = known.get(before);
  if (byAfter === undefined) known.set(before, byAfter = new WeakMap());
  let interim = byAfter.get(after);
  if (interim === undefined) {
    byAfter.set(after, interim = make(before, after) ?? null);
  }
  return interim ?? undefined;
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

/** Every virtual host ends with a route for all requests: none is behind it. */
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

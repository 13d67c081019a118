/**
 * What clients demand of routes, beyond the rules of their fields.
 *
 * Layer: xDS. Part of `validation.ts`.
 *
 * @module
 */

import type { RouteAction, RouteConfiguration } from "./xds_messages.ts";

/** Weights of all clusters of a route together. */
const WEIGHTS_MAX = 0xffff_ffff;

/** Problems of a route configuration, in the order of its fields. */
export function* routeProblems(
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

/** With one `*`, if any, at its begin or its end. */
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

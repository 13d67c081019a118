/**
 * What discovery calls the resources of one port of a service: its cluster, load
 * assignment, route configuration, and its listener for a node proxy.
 *
 * Everybody relies on these names: clients ask by them, status and logs show
 * them. Pure.
 *
 * @module
 */

import type { ServicePort } from "./model.ts";

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

/** The key of the service that a resource of this name is of. */
export function serviceOfResource(name: string): string {
  return name.replace(/:\d+(?:\/udp)?$/, "");
}

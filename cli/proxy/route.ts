/**
 * The route of `tunnel proxy` to endpoints behind agents: the one that flags
 * name, else as the node, and to the servers, that it follows for services.
 *
 * @module
 */

import type { TunnelRoute } from "../../client/tunnel_route.ts";
import type { NodeIdentity } from "../../client/node_identity.ts";
import type { Log } from "../../platform/log/log.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { joinedRoute } from "../flags/joined_node.ts";
import type { CommandContext } from "../program/command.ts";
import type { AdsAccess } from "../../agent/identity/ads_access.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import {
  hasLocalFrontend,
  ROUTE_ONLY_FLAGS,
  routeIfAny,
} from "../flags/route_flags.ts";

/** Flags that are about discovery as well. */
const SHARED: readonly string[] = ["agent-cert", "agent-key", "state-dir"];

/**
 * @param access To discovery servers, if there are any.
 * @param identity Of the node, when it has joined.
 * @returns `undefined` when there is none and no flag asks for one.
 * @throws {UsageError} One line.
 */
export function proxyRoute(
  reading: FlagReading<typeof ROUTE_ONLY_FLAGS>,
  context: Pick<CommandContext, "readFile" | "environment"> & {
    readonly log?: () => Log;
  },
  access: AdsAccess | undefined,
  identity?: NodeIdentity,
): TunnelRoute | undefined {
  const isNamed = Object.keys(ROUTE_ONLY_FLAGS)
    .some((name) => reading.given.has(name) && !SHARED.includes(name));
  const proxyEnv = proxyEnvironment(context.environment);
  if (isNamed || access === undefined) return routeIfAny(reading, context);
  if (hasLocalFrontend(context.environment)) {
    return routeIfAny(reading, context);
  }
  const { kind, addresses } = access;
  switch (kind) {
    // A server that asks for no certificate is shown none.
    case "plain":
      return routeIfAny(reading, context);
    case "files":
      // Without a certificate the server does not know this node.
      if (access.files.cert === "") return routeIfAny(reading, context);
      return { kind: "node", addresses, files: access.files, proxyEnv };
    case "joined":
      return joinedRoute(access.stateDirectory, {
        addresses,
        ...(identity === undefined ? {} : { identity }),
        proxyEnv,
      });
  }
}

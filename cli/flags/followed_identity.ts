/**
 * The identity of a node that has joined, for a command that goes in its name:
 * it renews, and follows what other programs of the node do with it.
 *
 * @module
 */

import { IdentityRoad } from "../../agent/identity/identity_road.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import type { Log } from "../../platform/log/log.ts";

/** Where it is kept, and where its servers are. */
export interface Joined {
  readonly stateDirectory: string;
  readonly addresses: readonly ServerAddress[];
}

/** Nothing is read before the first connection. */
export function followedIdentity(
  { stateDirectory, addresses: servers }: Joined,
  { log, environment, isBrief = false }: {
    readonly log: Log;
    readonly environment: (name: string) => string | undefined;
    /** See `IdentityRoadOptions`. */
    readonly isBrief?: boolean;
  },
): IdentityRoad {
  const proxyEnv = proxyEnvironment(environment);
  return new IdentityRoad({ stateDirectory, servers, log, proxyEnv, isBrief });
}

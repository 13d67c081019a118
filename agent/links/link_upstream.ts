/**
 * The way of links to servers: TLS with this agent's present certificate, to
 * the servers' present addresses.
 *
 * @module
 */

import {
  type TlsUpstream,
  tlsUpstream,
} from "../../net/channel/server_upstream.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { Log } from "../../platform/log/log.ts";
import type { LinkIdentity } from "../identity/enrolment_error.ts";

/** @param otherNames For which certificates may be, too. */
export function linkUpstream(
  addresses: readonly ServerAddress[],
  credentials: Credentials,
  { proxy, identity }: LinkEnvironment,
  otherNames?: readonly string[],
): TlsUpstream {
  const serverName = identity?.serverName;
  const findServers = identity?.findServers;
  const upstream = tlsUpstream({
    addresses,
    credentials: () => credentials.current,
    proxyEnv: proxy,
    serverName,
    otherNames: serverName === undefined ? otherNames : undefined,
    findServers: findServers && (() => findServers.call(identity)),
    identity,
  });
  const authority = upstream.authority || TUNNEL_SERVER_NAME;
  return { ...upstream, authority };
}

// What links take from the machine, and from the program that starts the agent,
// beside its options.

export interface LinkEnvironment {
  readonly log: Log;
  /** `HTTPS_PROXY` and `NO_PROXY`. */
  readonly proxy: ProxyEnvironment;
  /** In place of files; see `startJoinedAgent` and `startKubernetesAgent`. */
  readonly identity?: LinkIdentity;
  /** Uniform in [0, 1); the platform's when absent. */
  readonly random?: () => number;
}

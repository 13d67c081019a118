/**
 * The access of a client of discovery: the addresses of its servers, its
 * identity, its trust, and the route that follows from these.
 *
 * @module
 */

import type { Upstream } from "../../net/channel/upstream.ts";
import {
  plainUpstream,
  tlsUpstream,
} from "../../net/channel/server_upstream.ts";
import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import type { FollowedIdentity } from "./followed_identity.ts";

export type AdsAccess =
  /** Without TLS; on this machine. */
  | { readonly kind: "plain"; readonly addresses: readonly ServerAddress[] }
  | {
    readonly kind: "files";
    readonly addresses: readonly ServerAddress[];
    readonly credentials: Credentials;
    readonly files: {
      readonly ca: string;
      readonly cert: string;
      readonly key: string;
    };
    /** From the certificate; empty when it names no node, or is none. */
    readonly node: string;
  }
  /** With the identity of the joined node. */
  | {
    readonly kind: "joined";
    readonly addresses: readonly ServerAddress[];
    readonly stateDirectory: string;
    readonly node: string;
  };

/** What else decides about the way. */
interface AdsUpstreamOptions {
  readonly proxyEnv: ProxyEnvironment;
  /** The node's identity; required when it has joined. */
  readonly identity?: FollowedIdentity | undefined;
  /** The expected name in servers' certificates, if it is not the default. */
  readonly serverName?: string | undefined;
}

/** Nothing is connected yet. */
export function adsUpstreamOf(
  access: AdsAccess,
  { proxyEnv, identity, serverName }: AdsUpstreamOptions,
): Upstream {
  const { addresses } = access;
  switch (access.kind) {
    case "plain":
      return plainUpstream(addresses);
    case "files":
      return tlsUpstream({
        addresses,
        // Files may be replaced at any time.
        credentials: () => access.credentials.latest(),
        serverName,
        proxyEnv,
      });
    case "joined":
      if (identity === undefined) {
        throw new TypeError("Cannot follow discovery as nobody");
      }
      return tlsUpstream({
        addresses,
        identity,
        credentials: () => identity.current,
        serverName: serverName ?? TUNNEL_SERVER_NAME,
        proxyEnv,
      });
  }
}

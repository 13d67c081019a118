/**
 * The source of services that follows discovery servers, out of plain data.
 *
 * @module
 */

import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { DiscoveryMode } from "../../proto/xds/discovery.ts";
import { type AdsAccess, adsUpstreamOf } from "../identity/ads_access.ts";
import type { FollowedIdentity } from "../identity/followed_identity.ts";
import { AdsSource, proxyNode } from "../../services/proxy/ads/ads_source.ts";

/** The servers, the identity for them, and the copy of their answers. */
export interface DiscoveryClientConfig {
  readonly access: AdsAccess;
  readonly mode: DiscoveryMode;
  /** What the proxy is called: the node's name, or one that begins with it. */
  readonly node: string;
  /** The zone of this machine; empty: unknown. */
  readonly zone: string;
  /** The file for the last good state; absent: none. */
  readonly stateFile?: string | undefined;
}

/** What it needs from outside. */
interface DiscoveryTools {
  readonly log: Log;
  readonly proxyEnv: ProxyEnvironment;
  /** The identity of a node that has joined. */
  readonly identity?: FollowedIdentity | undefined;
}

/** Nothing is connected before it starts; the state file is read. */
export function discoverySource(
  { access, mode, node, zone, stateFile: path }: DiscoveryClientConfig,
  { log, proxyEnv, identity }: DiscoveryTools,
): AdsSource {
  return new AdsSource({
    upstream: adsUpstreamOf(access, { proxyEnv, identity }),
    mode,
    node: proxyNode(node, zone),
    timers: systemTimers,
    random: Math.random,
    onSilentEnd: () => identity?.doubt(),
    onStopped: () => identity?.stop(),
    kept: path === undefined ? undefined : { path, log },
  });
}

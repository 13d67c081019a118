/**
 * How calls get to a server of the tunnel: over its frontend, or over the port
 * where agents call in.
 *
 * @module
 */

import { Credentials } from "../net/tls/trust/credentials.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { type AdsRoad, tlsRoad } from "./ads/ads_road.ts";
import { openFrontendTransport } from "./frontend_socket.ts";
import type { FrontendAddress, NodeRoad } from "./road.ts";

/** What makes connections for calls, whatever is called. */
export type CallRoad = AdsRoad;

/** To a frontend. */
export function frontendRoad(
  address: FrontendAddress,
  timers: Timers,
): CallRoad {
  return {
    authority: "localhost",
    scheme: address.kind === "tcp" ? "https" : "http",
    async connect(use, signal) {
      return use(await openFrontendTransport(address, { timers, signal }));
    },
  };
}

/** To the agent port, as a node. */
export function nodeRoad(
  { addresses, files, identity, serverName, proxyEnv = {} }: NodeRoad,
): CallRoad {
  return tlsRoad({
    addresses,
    // Each time, so that renewed files are used without a word.
    credentials: () => identity?.current ?? Credentials.load(files).current,
    ...(identity === undefined ? {} : { identity }),
    ...(serverName === undefined ? {} : { serverName }),
    proxyEnv,
  });
}

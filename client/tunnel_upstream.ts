/**
 * How calls get to a server of the tunnel: over its frontend, or over the port
 * where agents call in.
 *
 * @module
 */

import { Credentials } from "../net/tls/trust/credentials.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { tlsUpstream } from "../net/channel/server_upstream.ts";
import { openFrontendStream } from "./frontend_stream.ts";
import type { FrontendAddress, NodeRoute } from "./tunnel_route.ts";

/** To a frontend. */
export function frontendUpstream(
  address: FrontendAddress,
  timers: Timers,
): Upstream {
  return {
    authority: "localhost",
    scheme: address.kind === "tcp" ? "https" : "http",
    async connect(use, signal) {
      return use(
        await openFrontendStream(address, "http2", { timers, signal }),
      );
    },
  };
}

/** To the agent port, as a node. */
export function nodeUpstream(
  { addresses, files, identity, serverName, proxyEnv = {} }: NodeRoute,
): Upstream {
  return tlsUpstream({
    addresses,
    // Each time, so that renewed files are used without a word.
    credentials: () => identity?.current ?? Credentials.load(files).current,
    ...(identity === undefined ? {} : { identity }),
    ...(serverName === undefined ? {} : { serverName }),
    proxyEnv,
  });
}

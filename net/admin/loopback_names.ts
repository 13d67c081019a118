/**
 * Ports on loopback answer only requests for a name of loopback.
 *
 * Attack in mind: DNS rebinding. A page in a browser on this machine is read
 * from a name of its author's, which then resolves to 127.0.0.1: for the
 * browser the listener here is the page's own server, and the page may read all
 * its answers. Its requests still have that name in `Host`, and no others have
 * it.
 *
 * @module
 */

import { withoutBrackets } from "../../proto/peer/host_port.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { HttpHandler } from "./http_port.ts";

/**
 * Answers requests for an address or for `localhost`, and no others.
 *
 * @param hostname Where the port listens; elsewhere than on loopback names are
 *   whatever people made them, and all are answered.
 */
export function guardNames(
  hostname: string,
  handler: HttpHandler,
): HttpHandler {
  if (!isLoopbackHost(hostname)) return handler;
  return (request, peer) => {
    const { hostname: requested } = new URL(request.url);
    const host = withoutBrackets(requested);
    const isKnown = parseIpAddress(host) !== undefined ||
      /^(?:.+\.)?localhost\.?$/.test(host);
    if (isKnown) return handler(request, peer);
    return new Response(
      "This port is of this machine alone: ask it by its address, or as " +
        "localhost\n",
      {
        status: 421,
        headers: { "content-type": "text/plain; charset=utf-8" },
      },
    );
  };
}

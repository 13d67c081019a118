/**
 * Ports of loopback answer to who knows that they are on loopback.
 *
 * Attack in mind: DNS rebinding. A page in a browser on this machine is read
 * from a name of its author's, which is then said to be 127.0.0.1: for the
 * browser what listens here is the page's own server, and the page may read all
 * that it says. Its requests still say that name, and nobody else's do.
 *
 * @module
 */

import { withoutBrackets } from "../../proto/peer/host_port.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { HttpHandler } from "./http_port.ts";

/**
 * Answers who asks by an address or as `localhost`, and nobody else.
 *
 * @param hostname Where the port listens; elsewhere than on loopback names are
 *   whatever people made them, and all are answered.
 */
export function guardNames(
  hostname: string,
  handler: HttpHandler,
): HttpHandler {
  if (!isLoopbackHost(hostname)) return handler;
  return (request) => {
    const { hostname: asked } = new URL(request.url);
    const host = withoutBrackets(asked);
    const isKnown = parseIpAddress(host) !== undefined ||
      /^(?:.+\.)?localhost\.?$/.test(host);
    if (isKnown) return handler(request);
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

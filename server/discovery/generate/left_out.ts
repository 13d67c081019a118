/**
 * Endpoints that a client cannot be told of, and what people can do about it.
 *
 * @module
 */

import type { Target } from "../../../catalog/snapshot.ts";

/** Why an endpoint is left out. */
export type WhyLeftOut = "host-name" | "behind-agent" | "udp-behind-agent";

const TEXTS: Readonly<Record<WhyLeftOut, string>> = {
  "host-name": "EDS carries IP addresses only; name them in the catalog",
  "behind-agent": "only agents reach them, and this client has no CONNECT " +
    "proxy; let it come by way of tunnel agent --xds-listen with " +
    "--connect-listen, and set tunnel.http_11_proxy in its node's metadata",
  "udp-behind-agent":
    "only agents reach them, and a CONNECT proxy carries no " +
    "datagrams; use tunnel proxy",
};

/** `2 of 3 endpoints are left out (web.internal, …): …`. */
export function leftOutText(
  reasons: ReadonlyMap<WhyLeftOut, readonly Target[]>,
  count: number,
): string {
  return [...reasons].map(([why, targets]) => {
    const [first] = targets;
    const more = targets.length > 1 ? ", …" : "";
    return `${targets.length} of ${count} endpoints left out ` +
      `(${first!.address}${more}): ${TEXTS[why]}`;
  }).join("; ");
}

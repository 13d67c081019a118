/**
 * Whether an address is this machine's: between it and us is no line.
 *
 * @module
 */

import { isLoopbackHost } from "../../../proto/peer/ip_address.ts";

/** @param host An IP address or `localhost`; all addresses (`0.0.0.0`) count. */
export function isHere(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || isLoopbackHost(host) ||
    Deno.networkInterfaces().some(({ address }) => address === host);
}

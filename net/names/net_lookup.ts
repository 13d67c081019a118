/**
 * The machine's resolver as `node:net` wants it.
 *
 * @module
 */

import type { LookupFunction } from "node:net";
import { LookupError } from "./resolver.ts";
import { systemResolver } from "./system_resolver.ts";

/** For the option `lookup` of a connection. */
export function lookupForNet(
  host: string,
  options: Parameters<LookupFunction>[1],
  callback: Parameters<LookupFunction>[2],
): void {
  systemResolver.lookup(host).then((addresses) => {
    const all = addresses.map((address) => ({
      address,
      family: address.includes(":") ? 6 : 4,
    }));
    if (options.all) return callback(null, all);
    callback(null, all[0]!.address, all[0]!.family);
  }, (error) => callback(withCode(error), options.all ? [] : ""));
}

/** Who connects asks for the code, not for the class. */
function withCode(error: Error): Error {
  const isUnknown = error instanceof LookupError && error.fault === "unknown";
  return isUnknown ? Object.assign(error, { code: "ENOTFOUND" }) : error;
}

/**
 * Names to addresses, the way the rest of the machine does it.
 *
 * `getaddrinfo` (through `node:dns`) and not `Deno.resolveDns`, because the
 * latter asks DNS servers only and knows neither `/etc/hosts` nor search
 * domains.
 *
 * @module
 */

import { lookup } from "node:dns";
import { codeOf } from "../sockets/octet_socket.ts";
import { type KeepingResolver, LookupError } from "./resolver.ts";

/** Codes that mean "there is no such name", so that no more is to be said. */
const NOT_FOUND: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"]);

/** The resolver of the machine. */
export const systemResolver: KeepingResolver = {
  lookup: (host) =>
    new Promise((resolve, reject) => {
      lookup(host, { all: true, verbatim: true }, (error, addresses) => {
        if (error !== null) {
          const code = codeOf(error);
          const detail = NOT_FOUND.has(code)
            ? ""
            : `the resolver failed: ${code || error.message}`;
          reject(new LookupError(host, detail));
        } else if (addresses.length === 0) reject(new LookupError(host));
        else resolve(addresses.map((entry) => entry.address));
      });
    }),
  async find(host) {
    const addresses = await systemResolver.lookup(host);
    return { addresses, freshForMs: 0, isLastAnswer: false };
  },
};

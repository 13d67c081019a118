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

/** Asks for the addresses of a name; handed in, so that tests can answer. */
export interface Resolver {
  /**
   * @returns IP addresses in the resolver's order of preference.
   * @throws {LookupError}
   */
  lookup(host: string): Promise<readonly string[]>;
}

/** A name without addresses. The text is Go's, as people and tests know it. */
export class LookupError extends Error {
  override readonly name = "LookupError";

  /** @param detail Why, when it was not simply a name that does not exist. */
  constructor(readonly host: string, detail = "") {
    super(
      `lookup ${host}: no such host${detail === "" ? "" : ` (${detail})`}`,
    );
  }
}

/** Codes that mean "there is no such name", so that no more is to be said. */
const NOT_FOUND: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"]);

/** The resolver of the machine. */
export const systemResolver: Resolver = {
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
};

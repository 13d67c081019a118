/**
 * The names of a hosts(5) file.
 *
 * @module
 */

import { isIpAddress } from "../../proto/peer/ip_address.ts";

/** Addresses by name; names in small letters, without a dot at their end. */
export type HostsFile = ReadonlyMap<string, readonly string[]>;

/** Lines that make no sense are skipped, as the C library does. */
export function parseHosts(text: string): HostsFile {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = wordsOf(line);
    if (address === undefined || !isIpAddress(address)) continue;
    for (const written of names) {
      const name = written.toLowerCase().replace(/\.$/, "");
      const known = hosts.get(name);
      if (known === undefined) hosts.set(name, [address]);
      else if (!known.includes(address)) known.push(address);
    }
  }
  return hosts;
}

/** The words of a line of a configuration file, comments left out. */
export function wordsOf(line: string, comments: RegExp = /#.*/): string[] {
  return line.replace(comments, "").split(/[ \t\r\f\v]+/)
    .filter((word) => word !== "");
}

/**
 * `host:port` apart, as Go's `net.SplitHostPort` does it, because that is what
 * Konnectivity's agents do with what they are asked to dial.
 *
 * @module
 */

import type { DialTarget } from "../../proto/link/link.ts";
import { addressError } from "./dial_errors.ts";

/**
 * Splits the address of a target. Brackets go; an empty host stays empty.
 *
 * @throws {DialError} With Go's words.
 */
export function splitAddress(
  target: DialTarget,
): { readonly host: string; readonly port: number } {
  const { protocol, address } = target;
  const match = /^(?:\[([^\][]*)\]|([^:\][]*)):([^:]*)$/.exec(address);
  if (match === null) {
    const isBare = !address.includes(":") || /^\[[^\][]*\]$/.test(address);
    const problem = isBare
      ? "missing port in address"
      : "too many colons in address";
    throw addressError(protocol, address, problem);
  }
  const port = match[3]!;
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535) {
    throw addressError(protocol, port, "invalid port");
  }
  return { host: match[1] ?? match[2] ?? "", port: Number(port) };
}

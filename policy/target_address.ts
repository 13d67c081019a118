/**
 * Splits `host:port` like Go's `net.SplitHostPort`, because Konnectivity's
 * agents do that with their targets.
 *
 * @module
 */

import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import { hasUnseen } from "../proto/peer/quoted.ts";

/**
 * The names that Go knows on every machine (`services` in its net package). What
 * a machine adds in /etc/services is not asked: rules about targets would mean
 * something else on each.
 */
const NAMED_PORTS: ReadonlyMap<string, string> = new Map([
  ["udp domain", "53"],
  ["tcp domain", "53"],
  ["tcp ftp", "21"],
  ["tcp ftps", "990"],
  ["tcp gopher", "70"],
  ["tcp http", "80"],
  ["tcp https", "443"],
  ["tcp imap2", "143"],
  ["tcp imap3", "220"],
  ["tcp imaps", "993"],
  ["tcp pop3", "110"],
  ["tcp pop3s", "995"],
  ["tcp smtp", "25"],
  ["tcp submissions", "465"],
  ["tcp ssh", "22"],
  ["tcp telnet", "23"],
]);

/**
 * Splits the address of a target. Brackets go; an empty host stays empty.
 *
 * @throws {DialError} With the message of Go.
 */
export function splitAddress(
  target: DialTarget,
): { readonly host: string; readonly port: number } {
  const { protocol, address } = target;
  if (hasUnseen(address)) {
    throw addressError(protocol, address, "it has invisible characters");
  }
  const match = /^(?:\[([^\][]*)\]|([^:\][]*)):([^:]*)$/.exec(address);
  if (match === null) {
    const isBare = !address.includes(":") || /^\[[^\][]*\]$/.test(address);
    const problem = isBare
      ? "missing port in address"
      : "too many colons in address";
    throw addressError(protocol, address, problem);
  }
  const port = NAMED_PORTS.get(`${protocol} ${match[3]!.toLowerCase()}`) ??
    match[3]!;
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535) {
    throw addressError(protocol, port, "invalid port");
  }
  return { host: match[1] ?? match[2] ?? "", port: Number(port) };
}

/** `unix:/path`, `udp:HOST:PORT`, or `HOST:PORT` of tcp. */
export function targetNamed(text: string): DialTarget {
  const [, protocol = "tcp", address = ""] = /^(?:(tcp|udp|unix):)?(.*)$/s
    .exec(text) ?? [];
  return { protocol, address };
}

/** The error of an address that cannot be dialed at all. */
function addressError(
  protocol: string,
  address: string,
  problem: string,
): DialError {
  return new DialError(
    "endpoint",
    `dial ${protocol}: address ${address}: ${problem}`,
    { code: "TUN101" },
  );
}

/**
 * Prepares a host for a look-up: it is an address, a name, or neither, which
 * needs no query.
 *
 * @module
 */

import { domainToASCII } from "node:url";
import {
  isAscii,
  isIpv4Lookalike,
  NAME_LENGTH_MAX,
} from "../../proto/peer/host_port.ts";
import { isIpAddress } from "../../proto/peer/ip_address.ts";
import { hasUnseen } from "../../proto/peer/quoted.ts";

/** A name that can be looked up. */
export interface HostName {
  /** In lower case, in ASCII, without a dot at its end. */
  readonly name: string;
  /** The name ended with a dot: no search domain is appended. */
  readonly isAbsolute: boolean;
}

/** What a host is; `zoned`: an IPv6 address of one interface (`fe80::1%eth0`). */
export type HostKind = "address" | "zoned" | "invalid" | HostName;

/** The longest label (RFC 1035 §3.1). */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$|^[a-z0-9_]$/;

/**
 * Reads a host. A name whose last label is a number is none: `127.1`, `0x7f.1`
 * and `2130706433` are addresses to some and names to others, so rules about
 * targets could be walked around with them.
 */
export function readHost(host: string): HostKind {
  if (isIpAddress(host)) return "address";
  if (host.includes(":")) return isZoned(host) ? "zoned" : "invalid";
  // The rest of a name that is too long is not read.
  if (host.length > NAME_LENGTH_MAX * 4 || hasUnseen(host)) return "invalid";
  const isAbsolute = host.endsWith(".");
  const bare = isAbsolute ? host.slice(0, -1) : host;
  const name = isAscii(bare) ? bare.toLowerCase() : domainToASCII(bare);
  if (name === "" || name.length > NAME_LENGTH_MAX) return "invalid";
  const labels = name.split(".");
  if (!labels.every((label) => LABEL.test(label))) return "invalid";
  if (isIpv4Lookalike(name)) return "invalid";
  return { name, isAbsolute };
}

/** Whether it is `domain` or lies in it. */
export function isIn(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}

/**
 * The unit of limits: name servers of one name mostly serve its neighbours,
 * too.
 */
export function domainOf(name: string): string {
  // Queried on one network, by mDNS.
  if (isIn(name, "local")) return "local";
  return name.split(".").slice(-2).join(".");
}

function isZoned(host: string): boolean {
  const [address = "", zone = "", ...more] = host.split("%");
  return more.length === 0 && /^[\w.-]{1,15}$/.test(zone) &&
    address.includes(":") && isIpAddress(address);
}

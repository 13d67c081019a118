/**
 * Checks whether an agent may use the identifiers that it claims.
 *
 * @module
 */

import {
  type IpPrefix,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../proto/peer/ip_address.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import {
  isNumericName,
  NODE_NAME_BYTES_MAX,
} from "../../proto/identity/node_name.ts";

/** Longest text of a peer that is repeated: a host name's. */
const CLAIM_LENGTH_MAX = 253;

/** The proven identity of a peer. */
export interface ProvenNames {
  /** The agent ids that it may have. */
  readonly ids: readonly string[];
  /** The values that it may have as `host` and `uid`. */
  readonly names: readonly string[];
  /** What else it may claim. An address or prefix inside a granted one is. */
  readonly granted: Identifiers;
}

/**
 * The first claim that was not granted.
 *
 * @returns Such as `ipv4=10.0.0.7`; `undefined` when all is well.
 */
export function unprovenClaim(
  { agentId, identifiers }: Pick<LinkPeer, "agentId" | "identifiers">,
  { ids, names: proven, granted }: ProvenNames,
): string | undefined {
  if (!ids.includes(agentId)) {
    return `agent id ${JSON.stringify(agentId.slice(0, CLAIM_LENGTH_MAX))}`;
  }
  const names = proven.map(nameKey);
  const isAddress = (text: string) => covers(granted, addressPrefix(text));
  const isHost = (host: string) =>
    names.includes(host) || granted.host.includes(host) ||
    isAddress(host);
  const isUid = (uid: string) =>
    names.includes(uid) || granted.uid.includes(uid);

  const claims = [
    ["host", identifiers.host.find((host) => !isHost(host))],
    ["uid", identifiers.uid.find((uid) => !isUid(uid))],
    ["ipv4", identifiers.ipv4.find((address) => !isAddress(address))],
    ["ipv6", identifiers.ipv6.find((address) => !isAddress(address))],
    [
      "cidr",
      identifiers.cidr.find((cidr) => !covers(granted, parseIpPrefix(cidr))),
    ],
  ] as const;
  for (const [key, value] of claims) {
    if (value !== undefined) return `identifier ${key}=${quoted(value)}`;
  }
  return identifiers.defaultRoute && !granted.defaultRoute
    ? "identifier default-route=true"
    : undefined;
}

/** The prefix that contains exactly one address. */
export function addressPrefix(text: string): IpPrefix | undefined {
  const address = parseIpAddress(text);
  return address && { address, length: address.length * 8 };
}

/** Whether an address or a prefix is inside one that was granted. */
function covers(granted: Identifiers, claimed: IpPrefix | undefined): boolean {
  if (claimed === undefined) return false;
  const { ipv4, ipv6, cidr } = granted;
  return [
    ...[...ipv4, ...ipv6].map(addressPrefix),
    ...cidr.map(parseIpPrefix),
  ].some((prefix) =>
    prefix !== undefined && prefix.length <= claimed.length &&
    prefixContains(prefix, claimed.address)
  );
}

/** A peer's text, made safe for a log line, and no longer than one. */
function quoted(text: string): string {
  return /^[\w.:/*-]{1,253}$/.test(text)
    ? text
    : JSON.stringify(text.slice(0, CLAIM_LENGTH_MAX));
}

// Patterns of node names: `*` matches any characters.

/** Whether a {@linkcode Wildcard} can match the name of any node. */
export function isNamePattern(text: string): boolean {
  return text.length <= NODE_NAME_BYTES_MAX &&
    /^[a-z0-9._*-]+$/.test(text) && !isNumericName(text);
}

/** The rule for people. */
export const NAME_PATTERN_RULE =
  'lower-case letters, digits, ".", "_", "-", and "*" for any, and nothing ' +
  "that reads as an IP address";

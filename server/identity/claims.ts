/**
 * What an agent claims by its identifiers, and whether it may.
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
  { ids, names, granted }: ProvenNames,
): string | undefined {
  if (!ids.includes(agentId)) {
    return `agent id ${JSON.stringify(agentId.slice(0, CLAIM_LENGTH_MAX))}`;
  }
  const own = names.map(nameKey);
  const isOwn = ({ key, value }: Claim) =>
    (key === "host" || key === "uid") && own.includes(value);
  const rights = claimsOf(granted)
    // A host that is an address gives the right to that host, not to addresses.
    .map((right) =>
      right.key === "host" ? { ...right, prefix: undefined } : right
    );
  const unproven = claimsOf(identifiers).find((claim) =>
    !isOwn(claim) && !rights.some((right) => isInside(right, claim))
  );
  return unproven && `identifier ${claimText(unproven)}`;
}

/** Something that connections are led by. */
export interface Claim {
  /** The identifier's name on the wire, such as `ipv4`. */
  readonly key: string;
  /** A peer's text. */
  readonly value: string;
  /** Absent: a name, or text that is no address and matches no grant of one. */
  readonly prefix: IpPrefix | undefined;
}

/** Such as `ipv4=10.0.0.7`, for a log: two long claims may read alike. */
export function claimText({ key, value }: Claim): string {
  return `${key}=${quoted(value)}`;
}

export function claimsOf(identifiers: Identifiers): readonly Claim[] {
  const { host, ipv4, ipv6, cidr, uid, defaultRoute } = identifiers;
  const claims = Object.entries({ host, ipv4, ipv6, cidr, uid })
    .flatMap(([key, values]) =>
      values.map((value): Claim => ({
        key,
        value,
        prefix: key === "cidr"
          ? parseIpPrefix(value)
          : key === "uid"
          ? undefined
          : addressPrefix(value),
      }))
    );
  const route = { key: "default-route", value: "true", prefix: undefined };
  return defaultRoute ? [...claims, route] : claims;
}

/** Whether all of a claim is in what was granted. */
export function isInside(
  { key, value, prefix }: Claim,
  claim: Claim,
): boolean {
  if (prefix === undefined || claim.prefix === undefined) {
    return key === claim.key && value === claim.value;
  }
  return prefix.length <= claim.prefix.length &&
    prefixContains(prefix, claim.prefix.address);
}

/** The prefix that contains exactly one address. */
function addressPrefix(text: string): IpPrefix | undefined {
  const address = parseIpAddress(text);
  return address && { address, length: address.length * 8 };
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

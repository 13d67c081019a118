/**
 * Which of a name's addresses comes first (RFC 6724 §6): those that can be
 * reached from here, and of those the ones nearest to our own addresses.
 *
 * @module
 */

import {
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../proto/peer/ip_address.ts";

/** How far an address is good (RFC 4291 §2.7, RFC 6724 §3.2). */
const LINK = 2;
const SITE = 5;
const GLOBAL = 14;

/** Prefix, precedence, label (RFC 6724 §2.1) and scope; the first that fits. */
const POLICIES = ([
  ["::1/128", 50, 0, LINK],
  ["127.0.0.0/8", 50, 0, LINK],
  ["169.254.0.0/16", 35, 4, LINK],
  ["0.0.0.0/0", 35, 4, GLOBAL],
  ["2001::/32", 5, 5, GLOBAL],
  ["2002::/16", 30, 2, GLOBAL],
  ["3ffe::/16", 1, 12, GLOBAL],
  ["fec0::/10", 1, 11, SITE],
  ["fc00::/7", 3, 13, GLOBAL],
  ["fe80::/10", 40, 1, LINK],
  ["::/0", 40, 1, GLOBAL],
] as const).map(([prefix, precedence, label, scope]) => ({
  prefix: parseIpPrefix(prefix)!,
  precedence,
  label,
  scope,
}));

/**
 * Sorts addresses; equals keep their order.
 *
 * @param sourceOf From which address of ours a destination is reached;
 *   `undefined`: from none.
 */
export function orderAddresses(
  addresses: readonly string[],
  sourceOf: (address: string) => string | undefined,
): readonly string[] {
  if (addresses.length < 2) return addresses;
  const ranked = addresses.map((address) => ({
    address,
    rank: rankOf(address, sourceOf(address)),
  }));
  return ranked.sort((a, b) => compare(a.rank, b.rank))
    .map(({ address }) => address);
}

/** What is compared, the first first; less is better. */
function rankOf(address: string, source: string | undefined): number[] {
  const to = policyOf(address);
  const from = source === undefined ? undefined : policyOf(source);
  if (to === undefined || from === undefined) return [1]; // Rule 1.
  return [
    0,
    to.scope === from.scope ? 0 : 1, // Rule 2.
    to.label === from.label ? 0 : 1, // Rule 5.
    -to.precedence, // Rule 6.
    to.scope, // Rule 8.
  ];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : a[at]! - b[at]!;
}

function policyOf(address: string) {
  const bytes = parseIpAddress(address);
  return bytes === undefined
    ? undefined
    : POLICIES.find(({ prefix }) => prefixContains(prefix, bytes));
}

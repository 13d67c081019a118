/**
 * Which of a name's addresses comes first (RFC 6724 §6): those that can be
 * reached from here, and of those the ones nearest to our own addresses.
 *
 * @module
 */

import {
  type IpAddress,
  isLoopback,
  parseIpAddress,
} from "../../proto/peer/ip_address.ts";

/** A prefix, and the policy of RFC 6724 §2.1 for it. */
interface Policy {
  readonly prefix: readonly number[];
  readonly bits: number;
  readonly precedence: number;
  readonly label: number;
}

/** The longest prefix first; IPv4 is `::ffff:0:0/96`. */
const POLICIES: readonly Policy[] = [
  { prefix: [0x20, 0x01, 0, 0], bits: 32, precedence: 5, label: 5 },
  { prefix: [0x20, 0x02], bits: 16, precedence: 30, label: 2 },
  { prefix: [0x3f, 0xfe], bits: 16, precedence: 1, label: 12 },
  { prefix: [0xfe, 0xc0], bits: 10, precedence: 1, label: 11 },
  { prefix: [0xfc], bits: 7, precedence: 3, label: 13 },
];
const LOOPBACK = { precedence: 50, label: 0 } as const;
const IPV4 = { precedence: 35, label: 4 } as const;
const OTHERS = { precedence: 40, label: 1 } as const;

/** How far an address is good (RFC 4291 §2.7, RFC 6724 §3.2). */
const LINK = 2;
const SITE = 5;
const GLOBAL = 14;

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
  const ranked = addresses.map((address) => {
    const to = parseIpAddress(address);
    const source = sourceOf(address);
    const from = source === undefined ? undefined : parseIpAddress(source);
    return { address, rank: rankOf(to, from) };
  });
  return ranked.sort((a, b) => compare(a.rank, b.rank))
    .map(({ address }) => address);
}

/** What is compared, the first first; less is better. */
function rankOf(
  to: IpAddress | undefined,
  from: IpAddress | undefined,
): readonly number[] {
  if (to === undefined || from === undefined) return [1]; // Rule 1.
  const isSameScope = scopeOf(to) === scopeOf(from);
  const isSameLabel = policyOf(to).label === policyOf(from).label;
  return [
    0,
    isSameScope ? 0 : 1, // Rule 2.
    isSameLabel ? 0 : 1, // Rule 5.
    -policyOf(to).precedence, // Rule 6.
    scopeOf(to), // Rule 8.
  ];
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value - other;
  }
  return 0;
}

function scopeOf(address: IpAddress): number {
  const [first = 0, second = 0] = address;
  if (address.length === 4) {
    return first === 127 || (first === 169 && second === 254) ? LINK : GLOBAL;
  }
  if (isLoopback(address)) return LINK;
  if (first !== 0xfe) return GLOBAL;
  const kind = second & 0xc0;
  return kind === 0x80 ? LINK : kind === 0xc0 ? SITE : GLOBAL;
}

function policyOf(address: IpAddress): { precedence: number; label: number } {
  if (address.length === 4) return IPV4;
  if (isLoopback(address)) return LOOPBACK;
  return POLICIES.find((policy) => isWithin(address, policy)) ?? OTHERS;
}

function isWithin(address: IpAddress, { prefix, bits }: Policy): boolean {
  return prefix.every((byte, index) => {
    const left = Math.min(8, bits - index * 8);
    const mask = (0xff << (8 - left)) & 0xff;
    return (address[index]! & mask) === (byte & mask);
  });
}

/**
 * The addresses of a name, from the machine's name servers, which the platform
 * asks (`Deno.resolveDns`), which reads resolv.conf(5) for each question:
 * search domains, and name servers, two at a time.
 *
 * It does not distinguish a missing name from failing servers. So names that it
 * does not find are looked up by the C library: see `machine_resolver.ts`.
 *
 * @module
 */

import { atMost, orAborted } from "../../platform/time/deadline.ts";
import {
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../proto/peer/ip_address.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/**
 * How long the other type is waited for when one has brought addresses: some
 * servers never answer a question for AAAA.
 */
export const OTHER_TYPE_MS = 500;

/** Addresses of a name that are taken. */
export const LOOKUP_ADDRESSES_MAX = 64;

/**
 * A question that can be given up is sent twice by the platform, with a second
 * for each. Some servers take longer to find out, and the network loses some.
 */
const ROUNDS = 2;

const TYPES = ["A", "AAAA"] as const;

/** Addresses; or servers, or one of them, did not answer. */
export type DnsFinding = readonly string[] | "silent";

/** What {@linkcode lookUpByDns} needs. */
export interface DnsLookupOptions {
  readonly timers: Timers;
  /** Gives it up; its reason is thrown. */
  readonly signal: AbortSignal;
  /** Used instead of the machine's name servers, in tests. */
  readonly nameServer?: Deno.ResolveDnsOptions["nameServer"];
}

/**
 * @param name With a dot at its end when no search domain is appended.
 * @returns No addresses: there is no such name, or it cannot be known in this
 *   way; `silent`: there was no answer.
 */
export async function lookUpByDns(
  name: string,
  { timers, signal, nameServer }: DnsLookupOptions,
): Promise<DnsFinding> {
  const over = new AbortController();
  const options = {
    signal: AbortSignal.any([signal, over.signal]),
    ...(nameServer === undefined ? {} : { nameServer }),
  };
  const answers: DnsFinding[] = [];
  const questions = TYPES.map(async (type, index) => {
    answers[index] = await ask(name, type, options);
  });
  const found = () => answers.flat().filter((answer) => answer !== "silent");
  try {
    await orAborted(Promise.race(questions), signal);
    const both = orAborted(Promise.all(questions), signal);
    await (found().length === 0 ? both : atMost(timers, OTHER_TYPE_MS, both));
  } finally {
    over.abort();
  }
  const isSilent = found().length === 0 && answers.includes("silent");
  return isSilent ? "silent" : found().slice(0, LOOKUP_ADDRESSES_MAX);
}

async function ask(
  name: string,
  type: typeof TYPES[number],
  options: Deno.ResolveDnsOptions,
): Promise<DnsFinding> {
  for (let round = 1; round <= ROUNDS; round++) {
    try {
      return await Deno.resolveDns(name, type, options);
    } catch (error) {
      if (!(error instanceof Deno.errors.TimedOut)) return [];
    }
  }
  return "silent";
}

/**
 * - `servers`: `Deno.resolveDns` asks them as the C library would.
 * - `stub`: they are systemd-resolved, so asking them is asking it.
 * - `special`: only the C library can ask them as the file wants.
 */
export type NameServers = "servers" | "stub" | "special";

/** The address of systemd-resolved. */
const STUBS: ReadonlySet<string> = new Set(["127.0.0.53", "127.0.0.54"]);

/** `Deno.resolveDns` reads over this: queries go by TCP only. */
const BY_TCP = /^options\b.*[ \t]use-vc(?:[ \t]|$)/m;

export function nameServersOf(text: string): NameServers {
  const servers = [...text.matchAll(/^nameserver[ \t]+(\S+)/gm)]
    .map(([, server]) => server!);
  // It forgets the interface of `fe80::1%eth0`.
  const hasZone = servers.some((server) => server.includes("%"));
  if (hasZone || BY_TCP.test(text)) return "special";
  const isStub = servers.length > 0 &&
    servers.every((server) => STUBS.has(server));
  return isStub ? "stub" : "servers";
}

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

/** The sort keys, the most important first; less is better. */
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

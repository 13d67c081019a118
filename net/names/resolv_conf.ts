/**
 * Which name servers are queried and how: a resolv.conf(5) file.
 *
 * @module
 */

import { isIpAddress } from "../../proto/peer/ip_address.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { wordsOf } from "./hosts_file.ts";
import { readHost } from "./host_name.ts";

/** How names are queried by DNS. */
export interface DnsConfig {
  /** At least one. */
  readonly servers: readonly DatagramAddress[];
  /** Put behind names, in this order. */
  readonly search: readonly string[];
  /** A name with so many dots is first queried as it stands. */
  readonly ndots: number;
  /** How long an answer is waited for when there is no other server. */
  readonly timeoutMs: number;
  /** How long before the next server, or the same again, is queried as well. */
  readonly tryMs: number;
  /** How often each server is queried. */
  readonly attempts: number;
  /** Servers take turns. */
  readonly rotates: boolean;
  readonly usesTcp: boolean;
  /** Only IPv4 addresses are queried. */
  readonly hasNoIpv6: boolean;
}

/** Those of the C library: `MAXNS`, and the options of its manual. */
const SERVERS_MAX = 3;
const SEARCH_MAX = 16;
const LIMITS = { ndots: 15, timeout: 30, attempts: 5 } as const;

/** Where DNS is served. */
const DNS_PORT = 53;

/**
 * Unless the file sets it, the next one is queried sooner than by the C library
 * (after 5 s): a dial has 5 s for all of it, and one name server of three that
 * is dead should not cost all of them.
 */
export const TRY_MS = 1_000;

/** The C library's. */
const TIMEOUT_MS = 5_000;

/**
 * Reads a file.
 *
 * @param extra What the environment adds: `options` (`RES_OPTIONS`) come last,
 *   `search` (`LOCALDOMAIN`) is instead of the file's.
 * @returns `undefined` when its name servers cannot be queried here (IPv6
 *   addresses of one interface).
 */
export function parseResolvConf(
  text: string,
  extra: {
    readonly options?: string;
    readonly search?: string;
  } = {},
): DnsConfig | undefined {
  const servers: string[] = [];
  let search: string[] = [];
  const options: string[] = [];
  for (const line of text.split("\n")) {
    const [key, ...words] = wordsOf(line, /^[ \t]*[#;].*|[ \t][#;].*/);
    if (key === "nameserver") servers.push(words[0] ?? "");
    else if (key === "search") search = words;
    else if (key === "domain") search = words.slice(0, 1);
    else if (key === "options") options.push(...words);
  }
  // Without one it is this machine (resolv.conf(5)).
  if (servers.length === 0) servers.push("127.0.0.1");
  const usable = servers.slice(0, SERVERS_MAX).filter(isIpAddress);
  if (usable.length === 0) return undefined;
  options.push(...wordsOf(extra.options ?? ""));
  const ownSearch = wordsOf(extra.search ?? "");
  if (ownSearch.length > 0) search = ownSearch;
  return {
    servers: usable.map((hostname) => ({ hostname, port: DNS_PORT })),
    search: searchOf(search),
    ...optionsOf(options),
  };
}

function searchOf(domains: readonly string[]): string[] {
  return domains.flatMap((domain) => {
    const read = readHost(domain);
    return typeof read === "string" ? [] : [read.name];
  }).slice(0, SEARCH_MAX);
}

type DnsOptions = Omit<DnsConfig, "servers" | "search">;

function optionsOf(words: readonly string[]): DnsOptions {
  const numberOf = (key: keyof typeof LIMITS): number | undefined => {
    const word = words.findLast((word) => word.startsWith(`${key}:`));
    const value = Number(word?.slice(key.length + 1) || NaN);
    return Number.isInteger(value) && value >= 0
      ? Math.min(value, LIMITS[key])
      : undefined;
  };
  const seconds = numberOf("timeout");
  // 0 is what the C library takes for 1.
  const timeoutMs = seconds === undefined
    ? TIMEOUT_MS
    : Math.max(1, seconds) * 1_000;
  return {
    ndots: numberOf("ndots") ?? 1,
    timeoutMs,
    tryMs: seconds === undefined ? TRY_MS : timeoutMs,
    attempts: Math.max(1, numberOf("attempts") ?? 2),
    rotates: words.includes("rotate"),
    usesTcp: words.includes("use-vc"),
    hasNoIpv6: words.includes("no-aaaa"),
  };
}

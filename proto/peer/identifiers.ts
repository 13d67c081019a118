/**
 * What an agent claims to serve, as it is sent in `agentidentifiers`: a URL
 * query such as `host=node1&ipv4=10.0.0.7&default-route=true`.
 *
 * Every identifier gets its normal form here, once (`normal_form.ts`), so later
 * code compares strings.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import {
  formatIpAddress,
  parseIpAddress,
  parseIpPrefix,
} from "./ip_address.ts";
import { hasUnseen } from "./quoted.ts";
import { nameKey, prefixKey } from "./normal_form.ts";

/** The keys there are. `uid` is ours: in Konnectivity the agent's id is that. */
const IDENTIFIER_KEYS = [
  "host",
  "ipv4",
  "ipv6",
  "cidr",
  "uid",
  "default-route",
] as const;

/** What an agent claims to serve; the keys of `--agent-identifiers`. */
export interface Identifiers {
  readonly host: readonly string[];
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  readonly cidr: readonly string[];
  readonly uid: readonly string[];
  readonly defaultRoute: boolean;
}

/** Longest text that is read: a peer's header must not become a large object. */
export const IDENTIFIERS_LENGTH_MAX = 64 * 1024;

/** Thrown for identifiers that cannot be read; the message is for people. */
export class IdentifiersError extends Error {
  override readonly name = "IdentifiersError";
  readonly tunnelCode: Code = "TUN101";
}

/** An agent that serves nothing by name. */
export const NO_IDENTIFIERS: Identifiers = {
  host: [],
  ipv4: [],
  ipv6: [],
  cidr: [],
  uid: [],
  defaultRoute: false,
};

/** All that these say together. */
export function joinedIdentifiers(
  several: readonly Identifiers[],
): Identifiers {
  const all = (of: (one: Identifiers) => readonly string[]) =>
    several.flatMap(of);
  return {
    host: all(({ host }) => host),
    ipv4: all(({ ipv4 }) => ipv4),
    ipv6: all(({ ipv6 }) => ipv6),
    cidr: all(({ cidr }) => cidr),
    uid: all(({ uid }) => uid),
    defaultRoute: several.some(({ defaultRoute }) => defaultRoute),
  };
}

/**
 * Reads identifiers.
 *
 * @param reader A `server` ignores keys it does not know (they may come from a
 *   newer agent) and values of the wrong kind: `ipv4=gw` must not be found by a
 *   search for the host `gw`. An agent checking its own `flag` refuses both.
 * @throws {IdentifiersError} On bad percent-encoding, and on refused keys or
 *   values.
 */
export function parseIdentifiers(
  text: string,
  reader: "server" | "flag",
): Identifiers {
  const isStrict = reader === "flag";
  if (text.length > IDENTIFIERS_LENGTH_MAX) {
    throw new IdentifiersError(
      `Cannot read agent identifiers: ${text.length} characters were given, ` +
        `${IDENTIFIERS_LENGTH_MAX} are allowed`,
    );
  }
  const values = new Map<string, string[]>();
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    if (pair.includes(";")) {
      // As Go's url.ParseQuery: some read `;` as another `&`, and guessing is
      // how two readers come to different identifiers.
      throw new IdentifiersError(
        `Cannot read agent identifiers: invalid semicolon in "${pair}"`,
      );
    }
    const at = pair.indexOf("=");
    const key = decode(at < 0 ? pair : pair.slice(0, at));
    const value = at < 0 ? "" : decode(pair.slice(at + 1));
    if (!(IDENTIFIER_KEYS as readonly string[]).includes(key)) {
      if (!isStrict) continue;
      throw new IdentifiersError(
        `Cannot use the agent identifier "${key}": it must be one of ` +
          IDENTIFIER_KEYS.join(", "),
      );
    }
    values.set(key, [...values.get(key) ?? [], value]);
  }
  const of = (key: string) => values.get(key) ?? [];
  return {
    host: distinct(of("host").map((text) => name(text, "host", isStrict))),
    ipv4: distinct(of("ipv4").map((text) => address(text, "ipv4", isStrict))),
    ipv6: distinct(of("ipv6").map((text) => address(text, "ipv6", isStrict))),
    cidr: distinct(of("cidr").map((text) => prefix(text, isStrict))),
    uid: distinct(of("uid").map((text) => name(text, "uid", isStrict))),
    // The first one counts and only Go's spellings of true are true.
    defaultRoute: TRUE.has(of("default-route")[0] ?? ""),
  };
}

/**
 * The pairs of a query whose values are no such address. Konnectivity never looks
 * at them, and its own manifests have some (`ipv4=${HOST_IP}`).
 */
export function unusablePairs(text: string): readonly string[] {
  return text.split("&").filter((pair) => {
    if (!/^(?:ipv4|ipv6|cidr)=/.test(pair)) return false;
    return isRead(pair, "server") && !isRead(pair, "flag");
  });
}

function isRead(text: string, reader: "server" | "flag"): boolean {
  try {
    parseIdentifiers(text, reader);
    return true;
  } catch {
    return false;
  }
}

/** Writes identifiers so that {@linkcode parseIdentifiers} reads them again. */
export function formatIdentifiers(identifiers: Identifiers): string {
  const pairs: string[] = [];
  for (const key of ["host", "ipv4", "ipv6", "cidr", "uid"] as const) {
    for (const value of identifiers[key]) {
      pairs.push(`${key}=${encodeURIComponent(value)}`);
    }
  }
  if (identifiers.defaultRoute) pairs.push("default-route=true");
  return pairs.join("&");
}

/** What Go's strconv.ParseBool takes for true. */
const TRUE: ReadonlySet<string> = new Set([
  "1",
  "t",
  "T",
  "true",
  "TRUE",
  "True",
]);

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    // The platform reports only "malformed"; the reader wants to see what was.
    throw new IdentifiersError(
      `Cannot read agent identifiers: invalid URL escape in "${text}"`,
    );
  }
}

/** @returns As `address`: what looks like another name on every screen is none. */
function name(
  text: string,
  key: "host" | "uid",
  isStrict: boolean,
): string | undefined {
  if (!hasUnseen(text) && !/\s/.test(text)) return nameKey(text);
  if (!isStrict) return undefined;
  throw new IdentifiersError(
    `Cannot use the agent identifier ${key}=${JSON.stringify(text)}: it has ` +
      "blanks, or invisible characters",
  );
}

/** @returns `undefined` for text that is no identifier: it matches no agent. */
function address(
  text: string,
  key: "ipv4" | "ipv6",
  isStrict: boolean,
): string | undefined {
  const parsed = parseIpAddress(text);
  if (isStrict) {
    // An IPv4-mapped IPv6 address names an IPv4 host: fine under either key.
    const fits = parsed !== undefined &&
      (key === "ipv6" || parsed.length === 4);
    if (fits) return formatIpAddress(parsed);
    throw new IdentifiersError(
      `Cannot read the agent identifier ${key}=${text}: it is no such address`,
    );
  }
  return parsed && formatIpAddress(parsed);
}

/** @returns As `address`. */
function prefix(text: string, isStrict: boolean): string | undefined {
  if (parseIpPrefix(text) !== undefined) return prefixKey(text);
  if (!isStrict) return undefined;
  throw new IdentifiersError(
    `Cannot read the agent identifier cidr=${text}: ADDRESS/LENGTH is wanted`,
  );
}

/** Each once, in order, and none that is empty: no host is called nothing. */
function distinct(values: readonly (string | undefined)[]): string[] {
  const known = values.filter((value) => value !== undefined);
  return [...new Set(known.filter((value) => value !== ""))];
}

/**
 * `--agent-identifiers`: a URL query, read strictly.
 *
 * Strictly, because this is the agent's own flag: a mistake here makes a node
 * unreachable without any other sign. (Go's agent refuses unknown keys too.)
 *
 * @module
 */

import { parseIpAddress, parseIpPrefix } from "../../proto/link/ip_address.ts";
import type { Identifiers } from "../../proto/link/link.ts";
import { FlagValueError } from "./flag.ts";
import { parseGoBool } from "./go_values.ts";
import { nearest } from "./nearest.ts";

/** An agent that announces nothing; strategy `default` still finds it. */
export const NO_IDENTIFIERS: Identifiers = {
  host: [],
  ipv4: [],
  ipv6: [],
  cidr: [],
  uid: [],
  defaultRoute: false,
};

type ListKey = "host" | "ipv4" | "ipv6" | "cidr" | "uid";

/** Per key: whether a value is one, and what was wanted. */
const LIST_KEYS: Readonly<
  Record<ListKey, readonly [(value: string) => boolean, string]>
> = {
  host: [(value) => !/[\s/]/.test(value), "a host name"],
  ipv4: [(value) => isAddress(value) && !value.includes(":"), "10.0.0.7"],
  ipv6: [(value) => isAddress(value) && value.includes(":"), "fd00::7"],
  cidr: [(value) => parseIpPrefix(value) !== undefined, "10.1.0.0/16"],
  uid: [(value) => value !== "", "an id"],
};

const KNOWN = "known keys: host, ipv4, ipv6, cidr, uid, default-route";

/**
 * Reads `host=node7&ipv4=10.0.0.7&default-route=true`; keys may repeat.
 *
 * @throws {FlagValueError} Naming the part that cannot be used.
 */
export function parseIdentifiers(query: string): Identifiers {
  const lists: Record<ListKey, string[]> = {
    host: [],
    ipv4: [],
    ipv6: [],
    cidr: [],
    uid: [],
  };
  let defaultRoute = false;
  for (const part of query.split("&").filter((part) => part !== "")) {
    const { key, value } = splitPart(part);
    if (key === "default-route") {
      const flag = parseGoBool(value);
      if (flag === undefined) {
        throw new FlagValueError(`default-route=true or =false, not ${value}`);
      }
      defaultRoute ||= flag;
    } else if (isListKey(key)) {
      const [isOne, example] = LIST_KEYS[key];
      if (value === "" || !isOne(value)) {
        throw new FlagValueError(
          `a value such as ${example} for ${key}, not "${value}"`,
        );
      }
      lists[key].push(value);
    } else {
      const near = nearest(key, [...Object.keys(LIST_KEYS), "default-route"]);
      const hint = near === undefined ? "" : ` (did you mean ${near}?)`;
      throw new FlagValueError(`no unknown key "${key}"${hint}; ${KNOWN}`);
    }
  }
  return { ...lists, defaultRoute };
}

function splitPart(part: string): { key: string; value: string } {
  const equals = part.indexOf("=");
  if (equals < 0) {
    throw new FlagValueError(
      `key=value pairs joined by &, such as host=node7; ` +
        `"${part}" has no =; ${KNOWN}`,
    );
  }
  try {
    const decode = (text: string) =>
      decodeURIComponent(text.replaceAll("+", " "));
    return {
      key: decode(part.slice(0, equals)),
      value: decode(part.slice(equals + 1)),
    };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw new FlagValueError(`a URL query; "${part}" has a broken % escape`);
  }
}

function isListKey(key: string): key is ListKey {
  return Object.hasOwn(LIST_KEYS, key);
}

function isAddress(value: string): boolean {
  return parseIpAddress(value) !== undefined;
}

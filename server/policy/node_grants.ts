/**
 * Which addresses a node may say that it serves.
 *
 * @module
 */

import {
  canonicalIp,
  type IpPrefix,
  parseIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../proto/link/ip_address.ts";
import {
  IdentifiersError,
  parseIdentifiers,
} from "../../proto/link/identifiers.ts";
import { Wildcard } from "../../host/policy/wildcard.ts";
import { FieldError, Fields } from "./fields.ts";

/** Keys that can be granted; a node's `host` and `uid` are its own name. */
export type GrantedKey = "ipv4" | "ipv6" | "cidr" | "default-route";

/** What one entry of `nodes` grants. */
export class NodeGrants {
  readonly #name: Wildcard;
  readonly #addresses: ReadonlySet<string>;
  readonly #prefixes: readonly IpPrefix[];
  readonly #defaultRoute: boolean;

  /** @throws {FieldError} */
  constructor(value: unknown, place: string) {
    const fields = new Fields(value, place, ["name", "identifiers"]);
    const name = fields.text("name");
    const identifiers = fields.texts("identifiers");
    if (name === undefined || identifiers === undefined) {
      const missing = name === undefined ? "name" : "identifiers";
      throw new FieldError(fields.placeOf(missing), "it is missing; add it");
    }
    this.#name = new Wildcard(name.toLowerCase());
    const granted = identifiers.map(([text, at]) => grantOf(text, at));
    this.#addresses = new Set(
      granted.flatMap(({ ipv4, ipv6 }) => [...ipv4, ...ipv6]),
    );
    this.#prefixes = granted.flatMap(({ cidr }) =>
      cidr.map((text) => parseIpPrefix(text)!)
    );
    this.#defaultRoute = granted.some(({ defaultRoute }) => defaultRoute);
  }

  /** Whether this entry is about `node` and covers what it claims. */
  covers(node: string, key: GrantedKey, value: string): boolean {
    if (!this.#name.matches(node.toLowerCase())) return false;
    switch (key) {
      case "default-route":
        return this.#defaultRoute;
      case "cidr":
        return this.#coversPrefix(value);
      case "ipv4":
      case "ipv6":
        return this.#coversAddress(value);
    }
  }

  /** A network may be claimed in parts. */
  #coversPrefix(text: string): boolean {
    const claimed = parseIpPrefix(text);
    return claimed !== undefined &&
      this.#prefixes.some((granted) =>
        granted.length <= claimed.length &&
        prefixContains(granted, claimed.address)
      );
  }

  #coversAddress(text: string): boolean {
    const claimed = parseIpAddress(text);
    return claimed !== undefined &&
      (this.#addresses.has(canonicalIp(text)) ||
        this.#prefixes.some((granted) => prefixContains(granted, claimed)));
  }
}

function grantOf(text: string, place: string) {
  const key = text.split("=", 1)[0]!;
  if (key === "host" || key === "uid") {
    throw new FieldError(
      place,
      `"${key}" cannot be granted: a node's host and uid are its own name`,
    );
  }
  try {
    return parseIdentifiers(text, "flag");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    throw new FieldError(
      place,
      `${error.message}; write cidr=10.0.0.0/8, ipv4=10.0.0.7, ipv6=fd00::7 ` +
        "or default-route=true",
    );
  }
}

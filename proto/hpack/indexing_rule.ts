/**
 * Which fields are worth a place in the dynamic table, and which must not have
 * one (RFC 7541 §6.2 leaves it to the encoder; §7.1 has the reasons).
 *
 * @module
 */

import type { HeaderField } from "./header_field.ts";

/**
 * - `index`: values repeat; insert.
 * - `literal`: values change with every message and would push useful entries
 *   out. The name may still be referred to.
 * - `never`: a secret. An attacker that can make requests of its own on the
 *   same connection could guess an indexed one value by value (§7.1.3), and no
 *   relay may index it either.
 */
export type IndexingRule = "index" | "literal" | "never";

// deno-fmt-ignore: grouped by what they have in common.
const RULES: ReadonlyMap<string, IndexingRule> = new Map<string, IndexingRule>([
  ["authorization", "never"], ["proxy-authorization", "never"],
  ["age", "literal"], ["date", "literal"], ["expires", "literal"], ["last-modified", "literal"],
  ["if-modified-since", "literal"], ["if-unmodified-since", "literal"],
  ["etag", "literal"], ["if-match", "literal"], ["if-none-match", "literal"], ["if-range", "literal"],
  ["content-length", "literal"], ["content-range", "literal"], ["range", "literal"],
  ["location", "literal"], ["content-location", "literal"], ["referer", "literal"],
  ["set-cookie", "literal"],
  ["grpc-timeout", "literal"], ["grpc-message", "literal"], ["grpc-status-details-bin", "literal"],
  ["traceparent", "literal"], ["tracestate", "literal"], ["x-request-id", "literal"],
]);

/**
 * Cookies shorter than this are never indexed: few enough guesses would find
 * them. Longer ones repeat and cannot be guessed whole.
 */
export const COOKIE_BYTES_INDEXED_MIN = 20;

/** The rule for all fields called `name`. */
export function indexingRule(name: string): IndexingRule {
  return RULES.get(name) ?? "index";
}

/** Whether a field is a secret, by its name and the length of its value. */
export function isSecret(
  name: string,
  value: string,
  rule: IndexingRule,
): boolean {
  return rule === "never" ||
    (name === "cookie" && value.length < COOKIE_BYTES_INDEXED_MIN);
}

/** Whether no part of a field may be remembered beyond its own connection. */
export function isOneConnections(
  { name, value, neverIndex }: HeaderField,
): boolean {
  return neverIndex === true || name === "cookie" ||
    isSecret(name, value, indexingRule(name));
}

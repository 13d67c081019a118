/**
 * Names of hosts as texts: what makes two spellings one name, and what only
 * looks like a name. Rules about targets, the catalog and resolvers must agree
 * on these, or a rule is walked around by a spelling.
 *
 * @module
 */

/** Longest name in text (RFC 1035 §3.1, without the root's byte). */
export const NAME_LENGTH_MAX = 253;

/** Lower case, and without the dot that only marks a name as complete. */
export function plainName(name: string): string {
  const lower = name.toLowerCase();
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/**
 * Whether resolvers take `name` for an IPv4 address in one of inet_aton's many
 * spellings (`127.1`, `0x7f.1`, `2130706433`): its last label is a number.
 */
export function isIpv4Lookalike(name: string): boolean {
  return /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i.test(name);
}

/** Whether no letter of it needs punycode. */
export function isAscii(text: string): boolean {
  // deno-lint-ignore no-control-regex -- that is what ASCII is
  return /^[\x00-\x7f]*$/.test(text);
}

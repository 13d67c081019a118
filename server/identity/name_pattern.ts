/**
 * Patterns of node names: `*` stands for any characters.
 *
 * @module
 */

import {
  isNumericName,
  NODE_NAME_BYTES_MAX,
} from "../../proto/identity/node_name.ts";

/** Whether a {@linkcode Wildcard} can match the name of any node. */
export function isNamePattern(text: string): boolean {
  return text.length <= NODE_NAME_BYTES_MAX &&
    /^[a-z0-9._*-]+$/.test(text) && !isNumericName(text);
}

/** The rule for people. */
export const NAME_PATTERN_RULE =
  'lower-case letters, digits, ".", "_", "-", and "*" for any, and nothing ' +
  "that reads as an IP address";

/**
 * Patterns of node names: `*` stands for any characters.
 *
 * @module
 */

import { NODE_NAME_OCTETS_MAX } from "../../proto/identity/node_name.ts";

/** Whether a {@linkcode Wildcard} can match the name of any node. */
export function isNamePattern(text: string): boolean {
  return text.length <= NODE_NAME_OCTETS_MAX && /^[a-z0-9._*-]+$/.test(text);
}

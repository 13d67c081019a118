/**
 * One entry of a policy's `dials`: which nodes it is about, and which targets
 * behind which other nodes it allows and denies them.
 *
 * @module
 */

import type { LabelledRule } from "../../policy/rule_set.ts";
import { Wildcard } from "../../policy/wildcard.ts";
import {
  DocumentMap,
  type Place,
} from "../../platform/documents/document_map.ts";
import { fitsNode, rulesIn } from "./frontend_entry.ts";

/** See the module description. */
export class NodeDialEntry {
  readonly allow: readonly LabelledRule[];
  readonly deny: readonly LabelledRule[];
  readonly #caller: Wildcard;
  readonly #nodes: readonly Wildcard[];

  /** @throws {FieldError} */
  constructor(value: unknown, readonly place: Place) {
    const known = ["node", "nodes", "allow", "deny"];
    const fields = new DocumentMap(value, place, known).refuseEmpty();
    const node = fields.text("node") ?? fields.refuse(
      "node",
      'it is missing; add the name of the node that dials, or "*" for all',
    );
    const { nodes, allow, deny } = rulesIn(fields);
    this.#caller = new Wildcard(node.toLowerCase());
    this.#nodes = nodes;
    this.allow = allow;
    this.deny = deny;
  }

  /** @param node The one that dials. */
  isAbout(node: string): boolean {
    return this.#caller.matches(node.toLowerCase());
  }

  /** Whether it is about dials of an agent that has these names. */
  isAboutNode(names: readonly string[]): boolean {
    return fitsNode(this.#nodes, names);
  }
}

/**
 * Whose links a change of one node's record may be about, without a look at all
 * links: ten thousand nodes that join at one time are as many changes.
 *
 * @module
 */

import { NODE_SUBJECT_PREFIX } from "../../proto/identity/node_name.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { LinkGroup } from "../links/link_choice.ts";

/** Agents by the names of nodes. */
export class LinkedNames {
  /** In their normal form, that of the certificate among them. */
  readonly #named = new Map<string, Set<LinkGroup>>();
  /** They proved nothing, so what they announce may be anybody's. */
  readonly #anonymous = new Set<LinkGroup>();

  add(agent: LinkGroup): void {
    if (agent.peer.identity.kind === "anonymous") this.#anonymous.add(agent);
    for (const name of namesOf(agent)) {
      let named = this.#named.get(name);
      if (named === undefined) this.#named.set(name, named = new Set());
      named.add(agent);
    }
  }

  remove(agent: LinkGroup): void {
    this.#anonymous.delete(agent);
    for (const name of namesOf(agent)) {
      const named = this.#named.get(name);
      named?.delete(agent);
      if (named?.size === 0) this.#named.delete(name);
    }
  }

  /** Who may be this node, or have announced what it was granted. */
  about(node: string): readonly LinkGroup[] {
    const named = this.#named.get(nameKey(node)) ?? [];
    return [...new Set([...named, ...this.#anonymous])];
  }
}

function namesOf({ peer }: LinkGroup): Set<string> {
  const { agentId, identity: { commonName }, identifiers } = peer;
  const node = commonName.startsWith(NODE_SUBJECT_PREFIX)
    ? commonName.slice(NODE_SUBJECT_PREFIX.length)
    : commonName;
  const { host, uid } = identifiers;
  return new Set([agentId, node, ...host, ...uid].map(nameKey));
}

/**
 * Links in order of arrival, with removal by identity.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";

/** See the module description. */
export class LinkList {
  // A sparse place is never left behind: the array is handed out as it is.
  readonly #links: AgentLink[] = [];

  get all(): readonly AgentLink[] {
    return this.#links;
  }

  add(link: AgentLink): void {
    this.#links.push(link);
  }

  /** Forgets `link`; harmless when it is not there. */
  remove(link: AgentLink): void {
    const index = this.#links.indexOf(link);
    if (index !== -1) this.#links.splice(index, 1);
  }
}

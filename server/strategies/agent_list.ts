/**
 * Agents, each by one of its links: however many links an agent has, and
 * whenever they came, it is drawn as often as any other.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import type { CandidateList } from "./strategy.ts";
import { LinkGroup } from "../links/link_choice.ts";

/** Links, and one of each agent. */
export class AgentList implements CandidateList<AgentLink> {
  /** All links of each agent. */
  readonly #agents = new Map<string, AgentLink[]>();
  // A sparse place is never left behind: the array is handed out as it is.
  readonly #heads: AgentLink[] = [];

  /** One link of each; which of its links is used is its group's business. */
  get all(): readonly AgentLink[] {
    return this.#heads;
  }

  add(link: AgentLink): void {
    const key = LinkGroup.keyOf(link.peer);
    const links = this.#agents.get(key);
    if (links !== undefined) return void links.push(link);
    this.#agents.set(key, [link]);
    this.#heads.push(link);
  }

  /** Forgets `link`; harmless when it is not there. */
  remove(link: AgentLink): void {
    const key = LinkGroup.keyOf(link.peer);
    const links = this.#agents.get(key);
    const index = links?.indexOf(link) ?? -1;
    if (links === undefined || index === -1) return;
    const [head, next] = links;
    links.splice(index, 1);
    if (links.length === 0) this.#agents.delete(key);
    if (link !== head) return;
    const place = this.#heads.indexOf(link);
    if (next !== undefined) this.#heads[place] = next;
    else this.#heads.splice(place, 1);
  }
}

/**
 * The links of one agent: between them only speed decides.
 *
 * Links belong together when the same certificate says the same agent id and
 * the same identifiers, so whoever may be served by one may be by all. An agent
 * that comes back after its line was cut is here twice for a while: whoever was
 * not heard since the newest came is asked for a sign of life, and not used
 * until it gives one.
 *
 * @module
 */

import type { AgentLink, LinkPeer } from "../../proto/link/link.ts";
import { chooseLink, type LinkSight } from "./link_choice.ts";

/** How good a link is, or the best of a group; less is better. */
export const Rank = { healthy: 0, silent: 1, draining: 2 } as const;

/** See {@linkcode Rank}. */
export type Rank = (typeof Rank)[keyof typeof Rank];

/** See the module description. */
export class LinkGroup {
  readonly #members: Member[] = [];

  /** The name under which a peer's links are found. */
  static keyOf({ agentId, identity, identifiers }: LinkPeer): string {
    return JSON.stringify([agentId, identity.fingerprint, identifiers]);
  }

  get isEmpty(): boolean {
    return this.#members.length === 0;
  }

  /** Conduits and pending dials of all links. */
  get load(): number {
    return this.#members.reduce((sum, { link }) => sum + link.load, 0);
  }

  add(link: AgentLink): void {
    for (const member of this.#members) member.link.askForLife();
    this.#members.push(new Member(link));
  }

  remove(link: AgentLink): void {
    const index = this.#members.findIndex((member) => member.link === link);
    if (index !== -1) this.#members.splice(index, 1);
  }

  /**
   * The link for a new conduit.
   *
   * @param rankOf Only those of the best rank are asked.
   */
  pick(rankOf: (link: AgentLink) => Rank, nowMs: number): AgentLink {
    const best = this.rank(rankOf);
    const able = this.#members.filter(({ link }) => rankOf(link) === best);
    const member = able.length === 1 ? able[0]! : chooseLink(able, nowMs);
    member.dialedMs = nowMs;
    return member.link;
  }

  /** That of its best link. */
  rank(rankOf: (link: AgentLink) => Rank): Rank {
    let best: Rank = Rank.draining;
    for (const { link } of this.#members) {
      const rank = rankOf(link);
      if (rank < best) best = rank;
    }
    return best;
  }
}

class Member implements LinkSight {
  dialedMs = -Infinity;

  constructor(readonly link: AgentLink) {}

  get bulkConduits(): number {
    return this.link.bulkConduits;
  }

  get roundTripMs(): number | undefined {
    return this.link.roundTripMs;
  }

  get load(): number {
    return this.link.load;
  }
}

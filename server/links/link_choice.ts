/**
 * Which of an agent's links a new conduit goes to.
 *
 * Links belong together when the same certificate names the same agent id and
 * the same identifiers: a target that one of them serves is served by all. An
 * agent that comes back after its line was cut is here twice for a while: a link
 * that received nothing since the newest came is asked for a sign of life, and
 * not used until it gives one.
 *
 * A conduit stays where it was dialed, and at that time it is not known what it
 * will be used for. A conduit that shares a link with a bulk conduit waits behind
 * what that one has queued, and for every lost packet of it. So a link counts as
 *
 * - `busy` while conduits move in bulk there,
 * - `open` for a while after a dial, because what was dialed may turn out so,
 * - `calm` otherwise: what lives there is interactive, or idle.
 *
 * Dials go to open links as long as one calm link is left, and to that one only
 * when all others are busy. With two links a burst of downloads shares one and
 * what comes later has the other; with more links bulk is spread over all but
 * one. When all are busy there is nothing left to keep: the least busy has it.
 *
 * @module
 */

import type { AgentLink, LinkPeer } from "../../proto/link/link.ts";

/** How long after a dial it is not known what its conduit is used for. */
export const OPEN_MS = 1_000;

/** A link whose round trips are so much longer than another's is left alone. */
const SLOW_RATIO = 2;

/** Below this difference it is chance. */
const SLOW_MS = 50;

/** How good a link is, or the best of a group; less is better. */
export const Rank = { healthy: 0, silent: 1, draining: 2 } as const;

/** See {@linkcode Rank}. */
export type Rank = (typeof Rank)[keyof typeof Rank];

/** A link, and the group's facts about it. */
interface Member {
  readonly link: AgentLink;
  /** When a dial was last sent there; `-Infinity` for never. */
  dialedMs: number;
}

/** The links of one agent. */
export class LinkGroup {
  /**
   * Its identity, its proof, and the identifiers that all its links announce.
   */
  readonly peer: Pick<LinkPeer, "agentId" | "identity" | "identifiers">;
  #members: readonly Member[] = [];

  constructor({ agentId, identity, identifiers }: LinkPeer) {
    this.peer = { agentId, identity, identifiers };
  }

  /** The name under which a peer's links are found. */
  static keyOf({ agentId, identity, identifiers }: LinkPeer): string {
    return JSON.stringify([agentId, identity.fingerprint, identifiers]);
  }

  get isEmpty(): boolean {
    return this.#members.length === 0;
  }

  /** Conduits and pending dials of all links, without those that end. */
  get load(): number {
    return this.#members.reduce((sum, { link }) => sum + loadOf(link), 0);
  }

  /** In order of arrival. */
  get links(): readonly AgentLink[] {
    return this.#members.map(({ link }) => link);
  }

  /** Whether one of its links is. */
  has(isWanted: (link: AgentLink) => boolean): boolean {
    return this.#members.some(({ link }) => isWanted(link));
  }

  add(link: AgentLink): void {
    for (const member of this.#members) member.link.checkLiveness();
    this.#members = this.#members.concat({ link, dialedMs: -Infinity });
  }

  remove(link: AgentLink): void {
    this.#members = this.#members.filter((member) => member.link !== link);
  }

  /**
   * The link for a new conduit.
   *
   * @param rankOf Only those of the best rank are asked.
   * @param isWanted Which may be chosen; all when it is absent.
   * @returns `undefined` when none is wanted.
   */
  pick(
    rankOf: (link: AgentLink) => Rank,
    nowMs: number,
    isWanted?: (link: AgentLink) => boolean,
  ): AgentLink | undefined {
    const wanted = isWanted === undefined
      ? this.#members
      : this.#members.filter(({ link }) => isWanted(link));
    if (wanted.length === 0) return undefined;
    const best = bestRank(wanted, rankOf);
    const member = chooseLink(
      wanted,
      ({ link }) => rankOf(link) === best,
      nowMs,
    );
    member.dialedMs = nowMs;
    return member.link;
  }

  /** That of its best link. */
  rank(rankOf: (link: AgentLink) => Rank): Rank {
    return bestRank(this.#members, rankOf);
  }
}

function bestRank(
  members: readonly Member[],
  rankOf: (link: AgentLink) => Rank,
): Rank {
  let best: Rank = Rank.draining;
  for (let at = 0; at < members.length; at++) {
    const rank = rankOf(members[at]!.link);
    if (rank < best) best = rank;
  }
  return best;
}

/**
 * Chooses among links that serve the same targets. Each dial comes here, so it
 * makes no lists.
 *
 * @param isAble One of `links` is, at least. Of equals the first is chosen.
 */
function chooseLink(
  links: readonly Member[],
  isAble: (one: Member) => boolean,
  nowMs: number,
): Member {
  let busy: Member | undefined;
  let open: Member | undefined;
  let calm: Member | undefined;
  let isCalmAlone = true;
  for (let at = 0; at < links.length; at++) {
    const one = links[at]!;
    if (!isAble(one)) continue;
    if (one.link.bulkConduits > 0) busy = busy ? lessBusy(busy, one) : one;
    else if (nowMs - one.dialedMs < OPEN_MS) {
      open = open ? lessLoaded(open, one) : one;
    } else {
      isCalmAlone = calm === undefined;
      calm = calm ? lessLoaded(calm, one) : one;
    }
  }
  if (calm !== undefined && (!isCalmAlone || open === undefined)) return calm;
  return open ?? busy!;
}

function lessLoaded(a: Member, b: Member): Member {
  return loadOf(b.link) < loadOf(a.link) ? b : a;
}

/**
 * A caller that dials again right after its connection ended must not find the
 * old one still counted until a goodbye has come back: it would be sent to
 * another link for that.
 */
function loadOf({ load, ending = 0 }: AgentLink): number {
  return load - ending;
}

/** Both move bulk, so both have fresh round trips, queues included. */
function lessBusy(a: Member, b: Member): Member {
  if (isSlowerThan(a, b)) return b;
  if (isSlowerThan(b, a)) return a;
  if (a.link.bulkConduits !== b.link.bulkConduits) {
    return b.link.bulkConduits < a.link.bulkConduits ? b : a;
  }
  return lessLoaded(a, b);
}

function isSlowerThan(a: Member, b: Member): boolean {
  const [aMs, bMs] = [a.link.roundTripMs, b.link.roundTripMs];
  if (aMs === undefined || bMs === undefined) return false;
  return aMs > bMs * SLOW_RATIO && aMs - bMs > SLOW_MS;
}

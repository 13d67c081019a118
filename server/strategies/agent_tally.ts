/**
 * How many agents there are by their ids, without counting them anew: health
 * ports and metrics ask all the time, and each link that comes or goes asks.
 *
 * @module
 */

import type { Candidate } from "./strategy.ts";

/** Agents, of which several may have one id. */
export class AgentTally {
  readonly #perId = new Map<string, number>();

  /** Distinct ids. */
  get size(): number {
    return this.#perId.size;
  }

  add({ peer: { agentId } }: Candidate): void {
    this.#perId.set(agentId, (this.#perId.get(agentId) ?? 0) + 1);
  }

  /** Takes back one that was added. */
  remove({ peer: { agentId } }: Candidate): void {
    const count = this.#perId.get(agentId);
    if (count === undefined || count === 1) this.#perId.delete(agentId);
    else this.#perId.set(agentId, count - 1);
  }
}

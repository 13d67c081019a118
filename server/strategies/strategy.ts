/**
 * How a dial finds the agents that may serve it.
 *
 * A strategy keeps an index of agents and answers one question: which of them
 * qualify for this target? Choosing among those is their list's business. Agents
 * of other servers are found in the same way.
 *
 * @module
 */

import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { StrategyName } from "../options.ts";

/** An agent, as strategies see it. */
export interface Candidate {
  readonly peer: {
    readonly agentId: string;
    readonly identifiers: Identifiers;
  };
}

/** Candidates that qualify for the same targets, and those to choose among. */
export interface CandidateList<C extends Candidate> {
  readonly all: readonly C[];
  /** Adds it, or looks at it anew. */
  add(candidate: C): void;
  /** Forgets it; harmless when it is not there. */
  remove(candidate: C): void;
}

/** Agents that qualify for a host, by one rule. */
export interface Strategy<
  C extends Candidate,
  List extends CandidateList<C> = CandidateList<C>,
> {
  readonly name: StrategyName;
  /** Adds it, or looks at it anew. @returns Whether it qualifies for anything. */
  add(candidate: C): boolean;
  /** Forgets it. @returns As {@linkcode add}. */
  remove(candidate: C): boolean;
  /** Those that qualify for a target host; `undefined`: none does. */
  list(host: string): List | undefined;
  /** The same, as they stand in their list; often none. */
  find(host: string): readonly C[];
}

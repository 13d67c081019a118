/**
 * How a dial finds the agents that may serve it.
 *
 * A strategy keeps an index of links and answers one question: which of them
 * qualify for this target? Choosing among those is the registry's business.
 * Agents of other servers are found in the same way, without links.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import type { StrategyName } from "../options.ts";

/** An agent, or a link of it, as strategies see it. */
export interface Candidate {
  readonly peer: {
    readonly agentId: string;
    readonly identifiers: Identifiers;
  };
}

/** Candidates that qualify for the same targets, and those to choose among. */
export interface CandidateList<C extends Candidate> {
  readonly all: readonly C[];
  add(candidate: C): void;
  /** Forgets it; harmless when it is not there. */
  remove(candidate: C): void;
}

/** Agents that qualify for a host, by one rule. */
export interface Strategy<C extends Candidate = AgentLink> {
  readonly name: StrategyName;
  add(candidate: C): void;
  remove(candidate: C): void;
  /** Those that qualify for a target host, in order of arrival; often none. */
  find(host: string): readonly C[];
  /** Those in the index, for metrics. */
  links(): Iterable<C>;
}

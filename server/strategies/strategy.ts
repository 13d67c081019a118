/**
 * How a dial finds the agents that may serve it.
 *
 * A strategy keeps an index of links and answers one question: which of them
 * qualify for this target? Choosing among those is the registry's business.
 *
 * @module
 */

import type { AgentLink } from "../../proto/link/link.ts";
import type { StrategyName } from "../options.ts";

/** Agents that qualify for a host, by one rule. */
export interface Strategy {
  readonly name: StrategyName;
  add(link: AgentLink): void;
  remove(link: AgentLink): void;
  /** Links that qualify for a target host, in order of arrival; often none. */
  find(host: string): readonly AgentLink[];
  /** Links in the index, for metrics. */
  links(): Iterable<AgentLink>;
}

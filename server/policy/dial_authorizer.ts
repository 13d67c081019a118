/**
 * Whether a dial may be made, before it is sent to any agent, and how that is
 * reported: to the caller by an error, to the audit log by a line, to the metrics
 * by a count.
 *
 * @module
 */

import type { AuditTrail } from "../../policy/audit_trail.ts";
import type { DialFacts, DialRecord } from "../../policy/dial_record.ts";
import { refusal } from "../../policy/refusal.ts";
import { NOT_ALLOWED, type RuleDecision } from "../../policy/rule_set.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { type Caller, callerFacts } from "./caller.ts";
import type { CatalogReach } from "./catalog_reach.ts";
import { NO_RULES, type Policy } from "./policy.ts";

/** A dial, as far as rules are about it. */
export interface RequestedDial {
  readonly target: DialTarget;
  readonly caller: Caller;
  /** The node that the caller names, if any. */
  readonly node: string | undefined;
  /** The connection's, for logs: what the caller gave, if it gave one. */
  readonly id?: ConnectionId | undefined;
}

/** Whether a dial may be made, and which log gets its outcome. */
export interface DialDecision {
  /** The dial must not be made, and why. */
  readonly refusal?: DialError;
  /** Receives the outcome of the dial. */
  readonly record?: DialRecord | undefined;
}

/** What `DialAuthorizer` needs from outside. */
export interface DialAuthorizerOptions {
  /** Absent: all callers may dial everything. */
  readonly policy?: { readonly current: Policy } | undefined;
  /** Absent: there is no audit log. */
  readonly trail?: AuditTrail | undefined;
  /** A dial was refused; for the metrics. */
  refused(): void;
}

/** Used when there are neither rules nor an audit log. */
const ADMITTED: DialDecision = Object.freeze({});

/** Callers with several servers ask the next one after these words. */
const NOT_ALL_KNOWN =
  "No agent available: this server does not know all services yet, as after " +
  "its start; `tunnel status` names the source that it waits for";

/** Decides about every dial of a server. */
export class DialAuthorizer {
  /** Set once there is a catalog; without one nodes may dial what rules allow. */
  reach: Pick<CatalogReach, "serviceOf" | "isComplete"> | undefined;

  constructor(private readonly options: DialAuthorizerOptions) {}

  /** Whether some callers must not learn the names of nodes. */
  get hidesNodes(): boolean {
    return this.options.policy !== undefined;
  }

  /**
   * Decides about a dial.
   *
   * @param agent The agent that would be asked. Absent: there is none, and a
   *   caller without the right to reach the node must not learn that.
   * @param forwardedTo The server that would be asked instead of an agent.
   */
  authorize(
    dial: RequestedDial,
    agent: LinkPeer | undefined,
    forwardedTo?: string,
  ): DialDecision {
    const decision = this.explain(dial, agent);
    const record = this.record(decision, dial, agent, forwardedTo);
    if (decision.isAllowed) return record === undefined ? ADMITTED : { record };
    if (this.#mayBeAllowedSoon(dial, decision)) {
      const error = new DialError("no-agent", NOT_ALL_KNOWN);
      return { refusal: error, record };
    }
    this.options.refused();
    const error = refusal("server", dial.target, decision);
    return { refusal: error, record };
  }

  /** No rule forbids it, and the service that allows it may not be known yet. */
  #mayBeAllowedSoon(
    { caller }: RequestedDial,
    { rule }: RuleDecision,
  ): boolean {
    return caller.node !== undefined && rule === "" &&
      this.reach?.isComplete === false;
  }

  /** For the audit log: a dial was decided. */
  record(
    decision: RuleDecision,
    dial: RequestedDial,
    agent: LinkPeer | undefined,
    forwardedTo?: string,
  ): DialRecord | undefined {
    const { trail } = this.options;
    const record = trail?.begin(recordedFacts(dial, agent, forwardedTo));
    record?.decided(decision, record.startMs);
    return record;
  }

  /** The decision, and its rule, for a dial that is not made. */
  explain(dial: RequestedDial, agent: LinkPeer | undefined): RuleDecision {
    const policy = this.options.policy?.current ?? NO_RULES;
    const { target, caller } = dial;
    const agents = namesOf(agent, dial.node);
    if (caller.node === undefined) {
      return policy.evaluate(caller, agents, target);
    }
    const decision = policy.evaluateNode(caller.node, agents, target);
    if (decision.isAllowed || decision.rule !== "") return decision;
    const service = this.reach?.serviceOf(caller.node, dial.node, target);
    return service === undefined
      ? { ...NOT_ALLOWED, note: `no service that ${caller.node} sees has it` }
      : { isAllowed: true, rule: `the catalog's ${service}` };
  }
}

/** Spelled out: this is done for each connection. */
function recordedFacts(
  { id, caller, target }: RequestedDial,
  agent: LinkPeer | undefined,
  forwardedTo: string | undefined,
): DialFacts {
  const who = callerFacts(caller);
  const from = caller.remoteAddress;
  if (forwardedTo !== undefined) return { id, who, from, forwardedTo, target };
  if (agent === undefined) return { id, who, from, target };
  return { id, who, from, node: agent.agentId, target };
}

/** What an agent is called, as policies name nodes. */
export function namesOf(
  agent: LinkPeer | undefined,
  wanted: string | undefined,
): readonly string[] {
  if (agent !== undefined) return [agent.agentId, ...agent.identifiers.host];
  // An agent of another server: its prefix says which identifier it is.
  return wanted === undefined ? [] : [wanted.replace(/^(?:host|id)=/, "")];
}

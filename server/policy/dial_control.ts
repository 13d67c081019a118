/**
 * Whether a dial may be made, before any agent hears of it, and who is told:
 * the caller by its error, the audit log by a line, the metrics by a count.
 *
 * @module
 */

import type {
  AuditTrail,
  DialFacts,
  DialRecord,
} from "../../policy/dial_record.ts";
import { refusal } from "../../policy/refusal.ts";
import { NOT_ALLOWED, type Verdict } from "../../policy/rule_set.ts";
import type { DialError, DialTarget } from "../../proto/peer/dial_error.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { type Caller, callerFacts } from "./caller.ts";
import type { CatalogReach } from "./catalog_reach.ts";
import { type Policy, UNRESTRICTED } from "./policy.ts";

/** What is asked about. */
export interface ControlledDial {
  readonly target: DialTarget;
  readonly caller: Caller;
  /** The node that the caller names, if any. */
  readonly node: string | undefined;
}

/** What became of the question. */
export interface DialAdmission {
  /** The dial must not be made, and why. */
  readonly refusal?: DialError;
  /** To be told what becomes of the dial. */
  readonly record?: DialRecord;
}

/** What `DialControl` needs from outside. */
export interface DialControlOptions {
  /** Absent: everybody may dial everything. */
  readonly policy?: { readonly current: Policy };
  /** Absent: there is no audit log. */
  readonly trail?: AuditTrail;
  /** A dial was refused; for the metrics. */
  refused(error: DialError): void;
}

/** Where there is nothing to judge by, and nobody to tell. */
const ADMITTED: DialAdmission = Object.freeze({});

/** See the module description. */
export class DialControl {
  readonly #options: DialControlOptions;
  /** Set once there is a catalog; without one nodes may dial what rules allow. */
  reach: Pick<CatalogReach, "serviceOf"> | undefined;

  constructor(options: DialControlOptions) {
    this.#options = options;
  }

  /** Whether there are callers who may not learn which nodes there are. */
  get hidesNodes(): boolean {
    return this.#options.policy !== undefined;
  }

  /**
   * Whether another agent may be asked for what one was: nobody has asked for it
   * by name, so nothing is said, counted or written down.
   */
  permits(dial: ControlledDial, agent: LinkPeer): boolean {
    return this.#judge(dial, agent).isAllowed;
  }

  /**
   * Judges a dial.
   *
   * @param agent Who would be asked. Absent: there is nobody, which a caller who
   *   may not reach the node it names is not to learn.
   */
  admit(dial: ControlledDial, agent: LinkPeer | undefined): DialAdmission {
    const { policy, trail } = this.#options;
    const { target, caller } = dial;
    const isFree = policy === undefined && trail === undefined &&
      caller.node === undefined;
    if (isFree) return ADMITTED;
    const verdict = this.#judge(dial, agent);
    const record = trail?.begin(recordedFacts(dial, agent));
    record?.decided(verdict, record.startMs);
    if (!verdict.isAllowed) {
      const refusal = this.#refuse(target, verdict);
      return record === undefined ? { refusal } : { refusal, record };
    }
    return record === undefined ? ADMITTED : { record };
  }

  #judge(dial: ControlledDial, agent: LinkPeer | undefined): Verdict {
    const policy = this.#options.policy?.current;
    const { target, caller } = dial;
    if (policy === undefined && caller.node === undefined) return UNRESTRICTED;
    const agents = namesOf(agent, dial.node);
    if (caller.node === undefined) {
      return policy?.judge(caller, agents, target) ?? UNRESTRICTED;
    }
    const verdict = policy?.judgeNode(caller.node, agents, target) ??
      NOT_ALLOWED;
    if (verdict.isAllowed || verdict.rule !== "") return verdict;
    const service = this.reach?.serviceOf(caller.node, dial.node, target);
    return service === undefined
      ? { ...NOT_ALLOWED, note: `no service that ${caller.node} sees has it` }
      : { isAllowed: true, rule: `the catalog's ${service}` };
  }

  #refuse(target: DialTarget, verdict: Verdict): DialError {
    const error = refusal("server", target, verdict);
    this.#options.refused(error);
    return error;
  }
}

/** Spelled out: this is done for each connection. */
function recordedFacts(
  { caller, target }: ControlledDial,
  agent: LinkPeer | undefined,
): DialFacts {
  const who = callerFacts(caller);
  const from = caller.remoteAddress;
  if (agent === undefined) return { who, from, target };
  return { who, from, node: agent.agentId, target };
}

/** What an agent is called, as policies name nodes. */
function namesOf(
  agent: LinkPeer | undefined,
  wanted: string | undefined,
): readonly string[] {
  if (agent !== undefined) return [agent.agentId, ...agent.identifiers.host];
  return wanted === undefined ? [] : [wanted];
}

/**
 * Whether a dial may be made, before any agent hears of it, and who is told:
 * the caller by its error, the audit log by a line, the metrics by a count.
 *
 * @module
 */

import {
  type AuditTrail,
  type DialRecord,
} from "../../host/policy/dial_record.ts";
import { refusal } from "../../host/policy/refusal.ts";
import type { Verdict } from "../../host/policy/rule_set.ts";
import type { DialError, DialTarget, LinkPeer } from "../../proto/link/link.ts";
import { type Caller, factsOf } from "./caller.ts";
import { type Policy, UNRESTRICTED } from "./policy.ts";

/** What is asked about. */
export interface ControlledDial {
  readonly target: DialTarget;
  readonly caller: Caller;
  /** The node that the caller names, if any. */
  readonly node: string | undefined;
}

/** What became of the question. */
export interface Admission {
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
  /** A dial was refused; for the metrics and the log. */
  refused(error: DialError): void;
}

/** See the module description. */
export class DialControl {
  readonly #options: DialControlOptions;

  constructor(options: DialControlOptions) {
    this.#options = options;
  }

  /**
   * Judges a dial.
   *
   * @param agent Who would be asked. Absent: there is nobody, which a caller who
   *   may not reach the node it names is not to learn.
   */
  admit(dial: ControlledDial, agent: LinkPeer | undefined): Admission {
    const { policy, trail } = this.#options;
    const { target, caller, node } = dial;
    const record = trail?.begin({
      who: factsOf(caller),
      from: caller.remoteAddress,
      ...(agent === undefined ? {} : { node: agent.agentId }),
      target,
    });
    const verdict =
      policy?.current.judge(caller, namesOf(agent, node), target) ??
        UNRESTRICTED;
    record?.decided(verdict);
    return {
      ...(record === undefined ? {} : { record }),
      ...(verdict.isAllowed ? {} : { refusal: this.#refuse(target, verdict) }),
    };
  }

  #refuse(target: DialTarget, verdict: Verdict): DialError {
    const error = refusal("server", target, verdict);
    this.#options.refused(error);
    return error;
  }
}

/** What an agent is called, as policies name nodes. */
function namesOf(
  agent: LinkPeer | undefined,
  wanted: string | undefined,
): readonly string[] {
  if (agent !== undefined) return [agent.agentId, ...agent.identifiers.host];
  return wanted === undefined ? [] : [wanted];
}

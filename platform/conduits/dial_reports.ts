/**
 * What becomes of a program's dials, told once and heard by all who want it: the
 * list of what is live, the log and the access log, the events, and the audit of
 * the one dial. A server, an agent and a service proxy have one each, so that what
 * they say of a connection cannot disagree.
 *
 * Of each dial it hears `began`, then `over`, and `connected` or `failed`; of one
 * that is refused before it begins, `failed` alone. Metrics are each program's own:
 * they are told of a connection as its `counter`.
 *
 * @module
 */

import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  type ConduitObserver,
  ObservedConduit,
} from "../../proto/transfer/observed_conduit.ts";
import type { ConnectionFacts, ConnectionLog } from "../log/connection_log.ts";
import type { ConduitCarrier } from "./live_conduit.ts";
import type { LiveConduits, LiveDial } from "./live_conduits.ts";

/** Why a dial came to nothing. */
export type DialProblem = Pick<
  DialError,
  "reason" | "message" | "tunnelCode"
>;

/** Who hears of all dials. */
export interface DialWitnesses {
  /** Absent: nothing is listed. */
  readonly conduits?: LiveConduits | undefined;
  /** Absent: nothing is said about connections. */
  readonly log?: ConnectionLog | undefined;
  /** A dial has failed. A caller that gave up knows that: it is not told here. */
  failed?(problem: DialProblem, facts: ConnectionFacts): void;
}

/** Who records one dial for auditors: `policy/dial_record.ts`. */
export interface DialAudit {
  failed(error: DialProblem): void;
  /** @returns The observer that counts the connection, and tells `inner`. */
  observing(inner: ConduitObserver): ConduitObserver;
}

/** What is told of a dial that failed; without a time it never began. */
export type ReportedDial =
  & Pick<LiveDial, "facts">
  & Partial<Pick<LiveDial, "askedMs">>;

/** What a connection brings. */
export interface ReportedConnection {
  /** Who counts it; absent: its program does that by itself. */
  readonly counter?: ConduitObserver;
  readonly audit?: DialAudit | undefined;
  /** When it stood, by the clock; now unless given. */
  readonly openedMs?: number;
  readonly carrier?: ConduitCarrier;
}

const NOBODY: ConduitObserver = { received() {}, sent() {}, ended() {} };

/** See the module description. */
export class DialReports {
  /** @param witnesses None of them: nothing is told. */
  constructor(private readonly witnesses: DialWitnesses = {}) {}

  /** Whether a dial or a connection that is listed has this id. */
  has(id: ConnectionId): boolean {
    return this.witnesses.conduits?.has(id) === true;
  }

  began(dial: LiveDial): void {
    this.witnesses.conduits?.dialBegins(dial);
  }

  /** It is not under way any more, whatever came of it. Harmless when repeated. */
  over(dial: LiveDial): void {
    this.witnesses.conduits?.dialOver(dial);
  }

  failed(
    problem: DialProblem,
    { facts, askedMs }: ReportedDial,
    audit?: DialAudit,
  ): void {
    const { conduits, log } = this.witnesses;
    audit?.failed(problem);
    log?.failed(problem, facts, askedMs);
    if (problem.reason === "cancelled") return;
    conduits?.dialFailed();
    this.witnesses.failed?.(problem, facts);
  }

  /** @returns The conduit as all others are to see it. */
  connected(
    conduit: Conduit,
    { id, askedMs, facts }: Pick<LiveDial, "id" | "askedMs" | "facts">,
    { counter = NOBODY, audit, ...origin }: ReportedConnection = {},
  ): ObservedConduit {
    const { conduits, log } = this.witnesses;
    const recorded = audit?.observing(counter) ?? counter;
    const observer = log?.wants() === true
      ? log.opened(facts, askedMs, recorded)
      : recorded;
    return conduits?.open(conduit, observer, facts, {
      id,
      askedMs,
      ...origin,
    }) ?? new ObservedConduit(conduit, observer);
  }
}

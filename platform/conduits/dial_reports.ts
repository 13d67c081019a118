/**
 * Reports the outcome of a program's dials to all observers: the live list, and
 * the program's witnesses (metrics, load, audit, log, access log, events). A
 * dial may bring a span and an audit record of its own.
 *
 * For each dial the observers get `began`, then `over`, and `connected` or
 * `failed`; for a dial that is refused before it begins, only `failed`. Where its
 * caller is joined with the connection here, they also get `joined`, and `closed`
 * when both ends are closed.
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
import type { ConnectionFacts } from "../log/connection_log.ts";
import type { Span } from "../tracing/tracing.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { type ConduitCarrier, LiveConduit } from "./live_conduit.ts";
import type { LiveConduits, LiveDial } from "./live_conduits.ts";

/** Why a dial failed, as a server counts it. */
export type DialFailureCause =
  /** The agent answered with an error: its own deadline is one, too. */
  | "answered"
  /** The agent did not answer before our deadline. */
  | "deadline"
  /** The caller gave up. */
  | "cancelled"
  /** A rule of ours forbids it: no agent was asked. */
  | "refused"
  | Extract<DialError["reason"], "no-agent" | "link-lost" | "dial-closed">;

/** Why a dial came to nothing; `cancelled`: the caller knows, and gave up. */
export type DialProblem = Pick<
  DialError,
  "reason" | "message" | "tunnelCode"
>;

/** How a dial passes servers: not at all, on to one, or from one. */
export type DialPath = "direct" | "to_peer" | "from_peer";

/** Records one dial for auditors: `policy/dial_record.ts`. */
export interface DialAudit {
  /** @param earlyBytes What had left with the dial. */
  failed(problem: Pick<DialProblem, "message">, earlyBytes?: number): void;
  /** @returns The observer that counts the connection, and tells `inner`. */
  observing(inner: ConduitObserver): ConduitObserver;
}

/** The report of a dial; without a time it never began. */
export interface ReportedDial {
  readonly facts: ConnectionFacts;
  readonly askedMs?: number;
  readonly span?: Span | undefined;
  readonly record?: DialAudit | undefined;
  /** The caller's bytes that left with it: they pass no conduit here. */
  readonly earlyBytes?: number;
  /** How it passes servers; absent: it passes none. */
  readonly path?: DialPath;
  /** The agent that is asked, if it is linked here. */
  readonly agentId?: string | undefined;
}

/** One that has begun. */
export interface BegunDial extends LiveDial, Omit<ReportedDial, "askedMs"> {
  readonly facts: ConnectionFacts;
  /** As in its facts, which are made anew each time. */
  readonly countedAs?: string | undefined;
}

/** Facts about a connection besides its dial. */
export interface Opened {
  readonly facts: ConnectionFacts;
  /** By the clock. */
  readonly openedMs: number;
}

/** Hears of all dials of a program. */
export interface DialWitness {
  began?(dial: BegunDial): void;
  /** It is no longer under way, whatever its outcome. */
  over?(dial: BegunDial): void;
  failed?(
    problem: DialProblem,
    dial: ReportedDial,
    facts: ConnectionFacts,
    cause?: DialFailureCause,
  ): void;
  /** @returns The observer of the connection; it tells `inner`. */
  connected?(
    dial: BegunDial,
    inner: ConduitObserver,
    opened: Opened,
  ): ConduitObserver;
  joined?(facts: ConnectionFacts): void;
  closed?(facts: ConnectionFacts): void;
}

const NOBODY: ConduitObserver = { received() {}, sent() {}, ended() {} };

/** See the module description. Loops by places make nothing for each dial. */
export class DialReports {
  readonly #witnesses: readonly DialWitness[];

  /**
   * @param list Absent: nothing is listed.
   * @param witnesses Witnesses that do not wrap the observer come first.
   */
  constructor(
    private readonly list?: LiveConduits,
    ...witnesses: readonly DialWitness[]
  ) {
    this.#witnesses = witnesses;
  }

  /** Whether a dial or a connection that is listed has this id. */
  has(id: ConnectionId): boolean {
    return this.list?.has(id) === true;
  }

  began(dial: BegunDial): void {
    this.list?.dialBegins(dial);
    const witnesses = this.#witnesses;
    for (let at = 0; at < witnesses.length; at++) witnesses[at]!.began?.(dial);
  }

  over(dial: BegunDial): void {
    this.list?.dialOver(dial);
    const witnesses = this.#witnesses;
    for (let at = 0; at < witnesses.length; at++) witnesses[at]!.over?.(dial);
  }

  /** @param cause Where a server counts it. */
  failed(
    problem: DialProblem,
    dial: ReportedDial,
    cause?: DialFailureCause,
  ): void {
    const { facts, earlyBytes, record, span } = dial;
    span?.end(problem.message);
    record?.failed(problem, earlyBytes);
    if (problem.reason !== "cancelled") this.list?.dialFailed();
    for (const witness of this.#witnesses) {
      witness.failed?.(problem, dial, facts, cause);
    }
  }

  /**
   * @param openedMs When it stood, by the clock.
   * @param own Observes this connection alone; tells no other.
   * @returns The conduit as all others are to see it.
   */
  connected(
    conduit: Conduit,
    dial: BegunDial,
    openedMs: number,
    { carrier, own = NOBODY }: {
      readonly carrier?: ConduitCarrier;
      readonly own?: ConduitObserver;
    } = {},
  ): ObservedConduit {
    const { id, askedMs, facts, earlyBytes = 0, record, span } = dial;
    span?.end();
    const opened = { facts, openedMs };
    let observer = own;
    const witnesses = this.#witnesses;
    for (let at = 0; at < witnesses.length; at++) {
      observer = witnesses[at]!.connected?.(dial, observer, opened) ?? observer;
    }
    observer = record?.observing(observer) ?? observer;
    const live = this.list?.open(conduit, observer, facts, {
      id,
      askedMs,
      openedMs,
      carrier,
    }) ?? new ObservedConduit(conduit, observer);
    if (earlyBytes > 0) live.sentEarly(earlyBytes);
    return live;
  }

  /**
   * Carries bytes until both are closed.
   *
   * @param target As {@linkcode connected} has made it.
   */
  join(caller: Conduit, target: Conduit, over?: () => void): void {
    const facts = target instanceof LiveConduit ? target.facts : {};
    for (const witness of this.#witnesses) witness.joined?.(facts);
    join(caller, target, () => {
      for (const witness of this.#witnesses) witness.closed?.(facts);
      over?.();
    });
  }
}

/**
 * Dials targets that are asked for through a link, and counts.
 *
 * @module
 */

import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import type { DialRecord } from "../../policy/dial_record.ts";
import { dialSpan } from "../../platform/tracing/tracing.ts";
import { newConnectionId } from "../../platform/process/connection_ids.ts";
import type {
  BegunDial,
  DialReports,
} from "../../platform/conduits/dial_reports.ts";
import type { RuleDecision } from "../../policy/rule_set.ts";
import {
  abandon,
  type DialAnswer,
  type DialContext,
} from "../../proto/link/dial_handler.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { PendingDial } from "../../proto/link/link.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";

/** What `TargetDialer` needs from outside. */
interface TargetDialerOptions {
  /**
   * Connects; rejects with a `DialError` whose message is for the caller.
   *
   * @param controller Of this dial alone; aborted with a `DialError` when the
   *   caller gives up.
   * @param onDecision Called with whether rules allow the dial.
   */
  connect(
    target: DialTarget,
    controller: AbortController,
    onDecision?: (decision: RuleDecision) => void,
  ): Promise<Conduit>;
  /** Absent: nothing is recorded. */
  readonly begin?:
    | ((target: DialTarget, id: ConnectionId) => DialRecord)
    | undefined;
  readonly clock: Clock;
  /** The reports of dials. */
  readonly reports: DialReports;
}

export class TargetDialer {
  constructor(private readonly options: TargetDialerOptions) {}

  /** A `DialHandler`. */
  readonly dial = (
    target: DialTarget,
    answer: DialAnswer,
    { id = newConnectionId(), trace }: Pick<DialContext, "id" | "trace"> = {},
  ): PendingDial => {
    const { connect, begin, clock, reports } = this.options;
    const record = begin?.(target, id);
    const controller = new AbortController();
    // The deadline aborts it as well, so its signal does not tell.
    let isCancelled = false;
    const facts = { id, target };
    const live: BegunDial = {
      id,
      facts,
      askedMs: record?.startMs ?? clock.now(),
      record,
      span: dialSpan("dial target", facts, trace),
      kill: (reason) =>
        controller.abort(
          new DialError("refused", reason, { code: "TUN509" }),
        ),
    };
    reports.began(live);
    const onDecision = record === undefined
      ? undefined
      : (decision: RuleDecision) => record.decided(decision, clock.now());
    const dialed = connect(target, controller, onDecision).then(
      (conduit) => {
        reports.over(live);
        if (isCancelled) return abandon(conduit, "the caller gave up");
        handOver(reports.connected(conduit, live, clock.now()), answer);
      },
      (error: unknown) => {
        reports.over(live);
        const failure = error instanceof DialError ? error : unforeseen(error);
        if (isCancelled) return;
        reports.failed(failure, live);
        answer.failed(failure);
      },
    );
    unawaited("dial", dialed);
    return {
      cancel: () => {
        isCancelled = true;
        const error = new DialError("cancelled", "the caller gave up");
        reports.failed(error, live);
        controller.abort(error);
      },
    };
  };
}

/** The receiver may throw an internal error. */
function handOver(conduit: Conduit, answer: DialAnswer): void {
  try {
    answer.connected(conduit);
  } catch (error) {
    const failure = unforeseen(error);
    letGo(conduit);
    guarded("dial", () => answer.failed(failure));
  }
}

/** The conduit may have an owner already. */
function letGo(conduit: Conduit): void {
  try {
    abandon(conduit, INTERNAL_ERROR);
  } catch {
    conduit.reset(INTERNAL_ERROR);
  }
}

/** The caller gets an answer to every kind of error. */
function unforeseen(error: unknown): DialError {
  reportInternalError("dial", error);
  return new DialError(
    "endpoint",
    `Cannot dial: ${INTERNAL_ERROR}`,
    { code: "TUN907" },
  );
}

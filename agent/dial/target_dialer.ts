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
import {
  AuditTrail,
  type DialRecord,
  type OperatorAction,
} from "../../policy/dial_record.ts";
import { isTracing, SPAN_ATTRIBUTES } from "../../platform/tracing/tracing.ts";
import { tracedDial } from "../../platform/tracing/traced_dial.ts";
import { newConnectionId } from "../../platform/process/connection_ids.ts";
import type { DialReports } from "../../platform/conduits/dial_reports.ts";
import type { LiveDial } from "../../platform/conduits/live_conduits.ts";
import type { RuleDecision } from "../../policy/rule_set.ts";
import {
  abandon,
  type DialAnswer,
  type DialContext,
} from "../../proto/link/dial_handler.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { sampledTraceId } from "../../proto/peer/trace_context.ts";
import type { PendingDial } from "../../proto/link/link.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { NamedTools } from "../../platform/program/tools.ts";
import { AuditLog, type AuditLogOptions } from "../../policy/audit_log.ts";
import { watchAuditLog } from "../../policy/audit_metrics.ts";

/** What is counted about targets, of all connections together. */
export interface TargetObserver extends ConduitObserver {
  failed(reason: DialError["reason"]): void;
  /** @param traceId Of the dial's span, where that is sampled. */
  connected(tookMs: number, traceId?: string): void;
}

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
  /** Absent: nothing is written down. */
  begin?(target: DialTarget, id: ConnectionId): DialRecord;
  readonly clock: Clock;
  readonly observer: TargetObserver;
  /** Who hears of dials. */
  readonly reports: DialReports;
  /** Called after every change of `TargetDialer.load`. */
  loadChanged(): void;
}

export class TargetDialer {
  /** One for all conduits: idle ones are many, and each should cost little. */
  readonly #conduitObserver: ConduitObserver;
  #load = 0;

  constructor(private readonly options: TargetDialerOptions) {
    const { observer } = options;
    this.#conduitObserver = {
      received: (bytes) => observer.received(bytes),
      sent: (bytes) => observer.sent(bytes),
      ended: (end) => {
        observer.ended(end);
        this.#changeLoad(-1);
      },
    };
  }

  /** Dials under way and conduits that are open. */
  get load(): number {
    return this.#load;
  }

  /** A `DialHandler`. */
  readonly dial = (
    target: DialTarget,
    answer: DialAnswer,
    { id = newConnectionId(), trace }: Pick<DialContext, "id" | "trace"> = {},
  ): PendingDial => {
    if (!isTracing) return this.#dial(target, answer, id);
    const attributes = {
      [SPAN_ATTRIBUTES.id]: id,
      [SPAN_ATTRIBUTES.target]: target.address,
      [SPAN_ATTRIBUTES.protocol]: target.protocol,
    };
    return tracedDial(
      "dial target",
      { parent: trace, attributes },
      answer,
      (trace, answer) => this.#dial(target, answer, id, sampledTraceId(trace)),
    );
  };

  #dial(
    target: DialTarget,
    answer: DialAnswer,
    id: ConnectionId,
    traceId?: string,
  ): PendingDial {
    const { connect, begin, clock, observer, reports } = this.options;
    const record = begin?.(target, id);
    const startMs = record?.startMs ?? clock.now();
    const controller = new AbortController();
    // The deadline aborts it as well, so its signal does not tell.
    let isCancelled = false;
    this.#changeLoad(1);
    const live: LiveDial = {
      id,
      facts: { id, target },
      askedMs: startMs,
      kill: (reason) =>
        controller.abort(
          new DialError("refused", reason, undefined, "TUN509"),
        ),
    };
    reports.began(live);
    const onDecision = record === undefined
      ? undefined
      : (decision: RuleDecision) => record.decided(decision, clock.now());
    const dialed = connect(target, controller, onDecision).then(
      (conduit) => {
        reports.over(live);
        if (isCancelled) {
          this.#changeLoad(-1);
          return abandon(conduit, "the caller gave up");
        }
        const openedMs = clock.now();
        observer.connected(openedMs - startMs, traceId);
        const observed = reports.connected(conduit, live, {
          counter: this.#conduitObserver,
          audit: record,
          openedMs,
        });
        handOver(observed, answer);
      },
      (error: unknown) => {
        this.#changeLoad(-1);
        reports.over(live);
        const failure = error instanceof DialError ? error : unforeseen(error);
        if (isCancelled) return;
        reports.failed(failure, live, record);
        observer.failed(failure.reason);
        answer.failed(failure);
      },
    );
    unawaited("dial", dialed);
    return {
      cancel: () => {
        isCancelled = true;
        const error = new DialError("cancelled", "the caller gave up");
        reports.failed(error, live, record);
        controller.abort(error);
      },
    };
  }

  #changeLoad(change: 1 | -1): void {
    this.#load += change;
    this.options.loadChanged();
  }
}

/** Whoever takes it may slip. */
function handOver(conduit: Conduit, answer: DialAnswer): void {
  try {
    answer.connected(conduit);
  } catch (error) {
    const failure = unforeseen(error);
    letGo(conduit);
    guarded("dial", () => answer.failed(failure));
  }
}

/** Somebody may have it already. */
function letGo(conduit: Conduit): void {
  try {
    abandon(conduit, INTERNAL_ERROR);
  } catch {
    conduit.reset(INTERNAL_ERROR);
  }
}

/** The caller is answered, whatever it was. */
function unforeseen(error: unknown): DialError {
  reportInternalError("dial", error);
  return new DialError(
    "endpoint",
    `Cannot dial: ${INTERNAL_ERROR}`,
    undefined,
    "TUN907",
  );
}

// The audit log of an agent: what it dialed, and how that ended. Who asked is in
// the server's, which knows callers.

export class AgentAudit {
  readonly #audit: AuditLog;
  readonly #trail: AuditTrail;

  /** @throws {AuditLogError} */
  constructor(
    where: AuditLogOptions,
    private readonly agentId: string,
    tools: NamedTools,
  ) {
    this.#audit = AuditLog.open(where, {
      log: tools.log,
      timers: tools.timers,
    });
    this.#trail = new AuditTrail(this.#audit, tools.timers);
    watchAuditLog(tools.metrics, tools.prefix, this.#audit);
  }

  /** A dial begins. */
  readonly begin = (target: DialTarget, id: ConnectionId): DialRecord =>
    this.#trail.begin({ id, node: this.agentId, target });

  /** An operator did something, or tried to. */
  acted(action: OperatorAction): void {
    this.#trail.acted(action);
  }

  /** Opens the file anew. */
  reopen(): void {
    this.#audit.reopen();
  }

  /** Writes everything. */
  async close(): Promise<void> {
    await this.#trail.close();
  }
}

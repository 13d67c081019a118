/**
 * The audit log of an agent: what it dialed, and how that ended. Who asked is in
 * the server's, which knows callers.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { AuditLog, type AuditLogOptions } from "../../policy/audit_log.ts";
import { watchAuditLog } from "../../policy/audit_metrics.ts";
import {
  AuditTrail,
  type DialRecord,
  type OperatorAction,
} from "../../policy/dial_record.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** What `AgentAudit` needs from outside. */
export interface AgentAuditOptions {
  readonly agentId: string;
  readonly log: Log;
  readonly timers: Timers;
  readonly metrics: MetricRegistry;
}

export class AgentAudit {
  readonly #node: string;
  readonly #audit: AuditLog;
  readonly #trail: AuditTrail;

  /** @throws {AuditLogError} */
  constructor(where: AuditLogOptions, options: AgentAuditOptions) {
    const { agentId, log, timers, metrics } = options;
    this.#node = agentId;
    this.#audit = AuditLog.open(where, { log, timers });
    this.#trail = new AuditTrail(this.#audit, timers);
    watchAuditLog(metrics, "tunnel_agent_", this.#audit);
  }

  /** A dial begins. */
  readonly begin = (target: DialTarget, id: ConnectionId): DialRecord =>
    this.#trail.begin({ id, node: this.#node, target });

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

/**
 * The audit log of an agent: what it dialed, and how that ended. Who asked is in
 * the server's, which knows callers.
 *
 * @module
 */

import type { NamedTools } from "../../platform/program/tools.ts";
import { AuditLog, type AuditLogOptions } from "../../policy/audit_log.ts";
import { watchAuditLog } from "../../policy/audit_metrics.ts";
import {
  AuditTrail,
  type DialRecord,
  type OperatorAction,
} from "../../policy/dial_record.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";

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

/**
 * An agent's dials, and what its audit log says about them.
 *
 * @module
 */

import { type DialOptions, dialTarget } from "../host/dial.ts";
import type { Log } from "../host/log.ts";
import type { MetricRegistry } from "../host/metrics.ts";
import { AuditLog, type AuditLogOptions } from "../host/policy/audit_log.ts";
import { watchAuditLog } from "../host/policy/audit_metrics.ts";
import { AuditTrail } from "../host/policy/dial_record.ts";
import { DialError, type DialTarget } from "../proto/link/link.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";

/** What `AuditedDials` needs from outside. */
export interface AuditedDialsOptions {
  readonly agentId: string;
  /** Absent: nothing is written. */
  readonly audit?: AuditLogOptions | undefined;
  readonly log: Log;
  readonly timers: Timers;
  readonly metrics: MetricRegistry;
}

/** See the module description. */
export class AuditedDials {
  readonly #agentId: string;
  readonly #audit: AuditLog | undefined;
  readonly #trail: AuditTrail | undefined;

  /** @throws {AuditLogError} */
  constructor(options: AuditedDialsOptions) {
    const { audit, log, timers, metrics } = options;
    this.#agentId = options.agentId;
    if (audit === undefined) return;
    this.#audit = AuditLog.open(audit, { log, timers });
    this.#trail = new AuditTrail(this.#audit, timers);
    watchAuditLog(metrics, "tunnel_agent_", this.#audit);
  }

  /**
   * {@linkcode dialTarget}, written down.
   *
   * Who asked is not known here: that is in the server's log, which knows
   * callers.
   *
   * @throws {DialError} As there.
   */
  dial(target: DialTarget, options: DialOptions): Promise<Conduit> {
    return this.#trail === undefined
      ? dialTarget(target, options)
      : this.#dialAudited(this.#trail, target, options);
  }

  /** Opens the audit log anew. */
  reopen(): void {
    this.#audit?.reopen();
  }

  /** Writes the audit log to its end. */
  async close(): Promise<void> {
    await this.#trail?.close();
  }

  async #dialAudited(
    trail: AuditTrail,
    target: DialTarget,
    options: DialOptions,
  ): Promise<Conduit> {
    const record = trail.begin({ node: this.#agentId, target });
    try {
      const conduit = await dialTarget(target, {
        ...options,
        onVerdict: (verdict) => record.decided(verdict),
      });
      return record.watch(conduit);
    } catch (error) {
      // Whoever gave the dial up said why; the platform has other words for it.
      const signal = options.controller?.signal;
      const cause = signal?.aborted ? signal.reason : error;
      if (cause instanceof DialError) record.failed(cause);
      throw error;
    }
  }
}

/**
 * The audit log as its writers see it: dials, actions of operators, and its
 * end.
 *
 * @module
 */

import type {
  DialWitness,
  ReportedDial,
} from "../platform/conduits/dial_reports.ts";
import type { NamedTools } from "../platform/program/tools.ts";
import { clipped } from "../proto/peer/quoted.ts";
import type { Clock } from "../proto/sync/clock.ts";
import { AuditLog, type AuditLogOptions } from "./audit_log.ts";
import {
  type DialFacts,
  DialRecord,
  LineTime,
  TEXT_LENGTH_MAX,
} from "./dial_record.ts";

/** The requested action on an admin port. */
export interface OperatorAction {
  readonly who: Readonly<Record<string, string>>;
  /** Such as `POST /v1/nodes/edge-7/drain`. */
  readonly action: string;
  /** The answer's bytes. */
  readonly status: number;
  /** Why it was not done. */
  readonly problem?: string | undefined;
}

/** Lines that can be looked at without reading the file. */
export const TAIL_LINES = 500;

/** The records of a process, from its start to its end. */
export class AuditTrail {
  readonly #open = new Set<DialRecord>();
  /** The last lines, for people: a ring. */
  readonly #tail: string[] = [];
  #tailAt = 0;
  #dials = 0;
  readonly #time: LineTime;

  constructor(readonly log: AuditLog, readonly clock: Clock) {
    this.#time = new LineTime(clock);
  }

  /**
   * @param where Absent: none is wanted.
   * @throws {AuditLogError} When the path can never work.
   */
  static open(
    where: AuditLogOptions | undefined,
    tools: NamedTools,
  ): AuditTrail | undefined {
    if (where === undefined) return undefined;
    const audit = AuditLog.open(where, tools);
    const { metrics, prefix, timers } = tools;
    metrics.computed(
      "counter",
      `${prefix}audit_lines_total`,
      "Lines written to the audit log.",
      () => audit.written,
    );
    metrics.computed(
      "counter",
      `${prefix}audit_dropped_lines_total`,
      "Lines that are missing in the audit log: it could not be written.",
      () => audit.dropped,
    );
    return new AuditTrail(audit, timers);
  }

  /** @param startMs When the dial was asked for, by the clock. */
  begin(facts: DialFacts, startMs: number = this.clock.now()): DialRecord {
    const record = new DialRecord(this, ++this.#dials, facts, startMs);
    this.#open.add(record);
    return record;
  }

  /** `record` has no more to say. @returns Whether it had until now. */
  over(record: DialRecord): boolean {
    return this.#open.delete(record);
  }

  /** @param ms Of `clock`. */
  timeAt(ms: number): string {
    return this.#time.iso(ms);
  }

  /**
   * An operator acted, or tried to. @param who The name from the door that the
   * operator came by.
   */
  acted({ who, action, status, problem }: OperatorAction): void {
    const line = JSON.stringify({
      time: this.timeAt(this.clock.now()),
      event: "admin",
      who,
      action: clipped(action, TEXT_LENGTH_MAX),
      status,
      problem: problem && clipped(problem, TEXT_LENGTH_MAX),
    });
    this.write(`${line}\n`);
  }

  /** @param line With its line break. */
  write(line: string): void {
    this.#tail[this.#tailAt] = line;
    this.#tailAt = (this.#tailAt + 1) % TAIL_LINES;
    this.log.write(line);
  }

  /** The last lines, the newest first, whether or not they are in the file yet. */
  tail(limit: number): readonly string[] {
    return this.#tail.slice(this.#tailAt)
      .concat(this.#tail.slice(0, this.#tailAt)).reverse().slice(0, limit);
  }

  /** Ends open records, and writes all lines. */
  async close(): Promise<void> {
    for (const record of [...this.#open]) {
      record.cutOff();
    }
    await this.log.close();
  }
}

/**
 * Records the dials of a program that has no rules: what its catalog says is
 * allowed. Each is recorded once it is known where it led to.
 */
export function catalogDials(trail: AuditTrail): DialWitness {
  const begin = ({ askedMs, facts }: ReportedDial): DialRecord => {
    const { id, from, service = "", target } = facts;
    const record = trail.begin({ id, service, from, target }, askedMs);
    const rule = `the catalog's ${service}`;
    record.decided({ isAllowed: true, rule }, trail.clock.now());
    return record;
  };
  return {
    failed: (problem, dial) => begin(dial).failed(problem, dial.earlyBytes),
    connected: (dial, inner) => begin(dial).observing(inner),
  };
}

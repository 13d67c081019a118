/**
 * The common part of every program's report: its identity, certificates in use,
 * unusable files, internal errors, traffic.
 *
 * @module
 */

import { internalErrorCounts } from "../../platform/errors/internal_errors.ts";
import type { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import type { CertificatesAnswer } from "../../proto/admin/list_answers.ts";
import type {
  Expiry,
  ProgramInfo,
  Traffic,
  Warning,
} from "../../proto/admin/status_answer.ts";
import type { RecentEvents } from "../../platform/log/recent_events.ts";
import { cpuSeconds } from "../../platform/metrics/process_metrics.ts";
import { VERSION } from "../../platform/process/version.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { workerFacts } from "./own_group.ts";
import type { TermSource } from "../tls/trust/expiry.ts";

const STARTED_AT = new Date().toISOString();

/** The common facts of all programs. */
export function programInfo(
  facts: Pick<
    ProgramInfo,
    "program" | "id" | "host" | "isReady" | "isDraining" | "addresses"
  >,
): ProgramInfo {
  return {
    ...facts,
    ...workerFacts(),
    version: VERSION,
    pid: Deno.pid,
    startedAt: STARTED_AT,
    now: new Date().toISOString(),
    residentBytes: Deno.memoryUsage().rss,
    cpuSeconds: cpuSeconds(),
  };
}

const SEVERITY_RANK = { error: 0, warning: 1, notice: 2 } as const;

/** A program's own warnings, and those that every program has: worst first. */
export function allWarnings(
  own: Iterable<Warning>,
  sources: Parameters<typeof sourceWarnings>[0],
  events: RecentEvents,
  others: Iterable<Warning> = [],
): readonly Warning[] {
  return [
    ...own,
    ...sourceWarnings(sources),
    ...others,
    ...shortageWarnings(events),
    ...slipWarnings(),
  ].sort((a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity]);
}

type Certificate = CertificatesAnswer["certificates"][number];

/** Certificates in use; several ports may trust one authority. */
export function certificatesInUse(
  sources: readonly TermSource[],
  nowMs: number = Date.now(),
): readonly Certificate[] {
  const found = new Map<string, Certificate>();
  for (const { kind, renewal, terms } of sources) {
    for (const term of terms) {
      const isLeaf = term.role === "leaf";
      // The agent port's own is made by the server itself.
      const isOurs = isLeaf && term.subject === "tunnel-server";
      found.set(`${isLeaf ? kind : ""} ${term.fingerprint}`, {
        use: isLeaf ? kind : "authority",
        subject: term.subject,
        issuer: term.issuer,
        notBefore: new Date(term.notBeforeMs).toISOString(),
        notAfter: new Date(term.notAfterMs).toISOString(),
        renewal: isOurs ? "by itself" : isLeaf ? renewal : "by hand",
        problem: problemAt(term.notAfterMs, nowMs),
      });
    }
  }
  return [...found.values()];
}

/** What is wrong with one that is good until then. */
export function problemAt(
  notAfterMs: number,
  nowMs: number,
): string | undefined {
  return notAfterMs > nowMs ? undefined : "it has expired: peers refuse it";
}

/** The same as the list of what will expire. */
export function expiryOf(
  { use, subject, notAfter, renewal }: Certificate,
): Expiry {
  return {
    what: use === "authority" ? `authority ${subject}` : `${use} certificate`,
    at: notAfter,
    renewal,
  };
}

/** Certificates that expire, and files that cannot be used. */
export function* fileWarnings(notes: readonly string[]): Iterable<Warning> {
  for (const note of notes) {
    const isExpired = / expired on /.test(note);
    const isExpiry = isExpired || / expires in /.test(note);
    yield {
      code: code(
        isExpiry
          ? "TUN202"
          : note.startsWith("policy:")
          ? "TUN124"
          : note.startsWith("Cannot write")
          ? "TUN905"
          : "TUN203",
      ),
      severity: isExpiry && !isExpired ? "warning" : "error",
      message: note,
    };
  }
}

/** Longest sentence of a source that is repeated. */
const PROBLEM_LENGTH_MAX = 400;

/** Sources of services that cannot be followed, or say what cannot be used. */
function* sourceWarnings(
  sources: Iterable<{
    readonly name: string;
    readonly isSynced: boolean;
    readonly problem?: string | undefined;
  }> = [],
): Iterable<Warning> {
  for (const { name, isSynced, problem } of sources) {
    // What agents announce comes when they do.
    if (problem === undefined && (isSynced || name === "agents")) continue;
    const why = clipped(
      problem ?? "it has not answered yet",
      PROBLEM_LENGTH_MAX,
    );
    yield {
      code: code("TUN701"),
      severity: isSynced ? "warning" : "error",
      message: `Source ${name}: ${why}; ` +
        (isSynced
          ? "its last state stays in use"
          : "none of its services is served until it has answered"),
    };
  }
}

/** What was short so lately is worth a warning. */
export const LATELY_MS = 600_000;

/** Connections that were refused for want of descriptors, as the log says. */
function* shortageWarnings(events: RecentEvents): Iterable<Warning> {
  for (
    const { event, since } of events.repeated("warning", Date.now() - LATELY_MS)
  ) {
    const { code, message } = event;
    if (code === "TUN513") yield { code, severity: "warning", message, since };
  }
}

/** Slips of ours; each ended one thing. */
function* slipWarnings(): Iterable<Warning> {
  let count = 0;
  for (const [, times] of internalErrorCounts()) count += times;
  if (count === 0) return;
  yield {
    code: code("TUN907"),
    severity: "warning",
    message:
      `${count} internal ${count === 1 ? "error" : "errors"} since the ` +
      "start, each of which ended one connection or task; the log has them: " +
      "please report them",
  };
}

/**
 * The traffic of a program.
 *
 * @param dialsMs How far back dials count for the dial time.
 */
export function trafficOf(
  conduits: LiveConduits,
  pendingDials: number,
  dialsMs?: number,
): Traffic {
  const [p50, p99] = conduits.dialTimes.percentiles(conduits.nowMs, [
    0.5,
    0.99,
  ], dialsMs);
  return {
    conduits: conduits.size,
    pendingDials,
    ...conduits.totals(),
    dialP50Ms: p50 && hundredth(p50),
    dialP99Ms: p99 && hundredth(p99),
  };
}

/** As many digits as are significant. */
export function hundredth(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Only codes of the table are said. */
export function code(known: Code): Code {
  return known;
}

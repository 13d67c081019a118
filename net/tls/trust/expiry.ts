/**
 * Reports in good time when certificates expire: in metrics, in the detail of
 * readiness, and in the log, once for each step of urgency.
 *
 * @module
 */

import type { NamedTools } from "../../../platform/program/tools.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { CertificateTerm, Renewal } from "./credentials.ts";

const DAY_MS = 24 * 3600_000;

/** Days before the end at which a warning is due, the most urgent first. */
export const WARNING_DAYS: readonly number[] = [0, 1, 7, 30];

/**
 * A step of less urgency than a third of a certificate's life is left out: that
 * is when those that renew themselves do so.
 */
const QUIET_PART = 1 / 3;

/** A machine that slept, or whose clock was set, is noticed after this. */
const LOOK_MS_MAX = 6 * 3600_000;

/** The metrics of one kind, the certificates that expire first. */
export const SHOWN_CERTIFICATES_MAX = 32;

/** Certificates in use, by purpose. */
export interface TermSource {
  /** One of few words that the code knows. */
  readonly kind: string;
  /** For leaves: decides the words of a warning. */
  readonly renewal: Renewal;
  /** For certificates in use now. */
  readonly terms: readonly CertificateTerm[];
}

/** What {@linkcode ExpiryWatch} needs. */
export interface ExpiryWatchOptions extends NamedTools {
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class ExpiryWatch {
  readonly #sources: TermSource[] = [];
  /**
   * By fingerprint: the days left at the last warning, Infinity without one.
   */
  #seen = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(private readonly options: ExpiryWatchOptions) {
    options.metrics.computedLabelled(
      "gauge",
      `${options.prefix}certificate_expiry_timestamp_seconds`,
      "When certificates that are in use expire, as Unix time.",
      ["kind", "role", "subject"],
      () => this.#shown(),
    );
  }

  add(source: TermSource): void {
    this.#sources.push(source);
  }

  /** All that there are. */
  get sources(): readonly TermSource[] {
    return this.#sources;
  }

  /** Warns about certificates that expire soon, and again when others do. */
  check(): void {
    // Only certificates in use are remembered.
    const seen = new Map<string, number>();
    const now = this.options.now();
    let waitMs = LOOK_MS_MAX;
    for (const source of this.#sources) {
      const { terms } = source;
      for (const term of terms) {
        const step = this.#step(source, term, now);
        seen.set(term.fingerprint, step);
        waitMs = Math.min(waitMs, ...untilSteps(term, now));
      }
    }
    this.#seen = seen;
    this.#timer?.cancel();
    this.#timer = this.options.timers.after(waitMs, () => this.check());
  }

  /** Warns if need be; @returns the days of the last warning. */
  #step(source: TermSource, term: CertificateTerm, now: number): number {
    const before = this.#seen.get(term.fingerprint);
    const due = dueStep(term, now);
    // The reader of an expired certificate has reported it.
    const isNews = due < (before ?? Infinity) &&
      (due > 0 || before !== undefined);
    if (isNews) {
      this.options.log.warn(sentence(source, term, now), { code: "TUN202" });
    }
    return Math.min(due, before ?? Infinity);
  }

  /** Notes for the detail of readiness; empty when all is well. */
  get notes(): readonly string[] {
    const now = this.options.now();
    return this.#sources.flatMap((source) =>
      source.terms.filter((term) => dueStep(term, now) < Infinity)
        .slice(0, SHOWN_CERTIFICATES_MAX)
        .map((term) => sentence(source, term, now))
    );
  }

  close(): void {
    this.#timer?.cancel();
  }

  #shown(): Iterable<readonly [readonly string[], number]> {
    return this.#sources.flatMap(({ kind, terms }) =>
      terms.toSorted((one, other) => one.notAfterMs - other.notAfterMs)
        // Of several with one name the first to expire is shown.
        .slice(0, SHOWN_CERTIFICATES_MAX)
        .map(({ role, subject, notAfterMs }) =>
          [[kind, role, subject], Math.floor(notAfterMs / 1000)] as const
        )
    );
  }
}

function stepsOf({ notBeforeMs, notAfterMs }: CertificateTerm): number[] {
  const quietMs = (notAfterMs - notBeforeMs) * QUIET_PART;
  return WARNING_DAYS.filter((days) => days * DAY_MS < quietMs);
}

/** The most urgent step that has come; infinite when none has. */
function dueStep(term: CertificateTerm, now: number): number {
  return stepsOf(term)
    .find((days) => now >= term.notAfterMs - days * DAY_MS) ?? Infinity;
}

/** How long it is until each step that is still to come. */
function untilSteps(term: CertificateTerm, now: number): number[] {
  return stepsOf(term)
    .map((days) => term.notAfterMs - days * DAY_MS - now)
    .filter((untilMs) => untilMs > 0);
}

function sentence(
  { kind, renewal }: TermSource,
  term: CertificateTerm,
  now: number,
): string {
  const { subject, notAfterMs } = term;
  const isLeaf = term.role === "leaf";
  const role = isLeaf ? "certificate" : "authority";
  const what = `${kind}: the ${role} ${subject}`;
  const on = new Date(notAfterMs).toISOString();
  const renewsItself = isLeaf && renewal === "by itself";
  if (notAfterMs <= now) {
    const remedy = renewsItself
      ? "it renews itself before it is shown; the log names the obstacle"
      : "peers refuse it: renew it";
    return `${what} expired on ${on}; ${remedy}`;
  }
  const remedy = renewsItself
    ? "it should have renewed itself; the log names the obstacle"
    : "renew it";
  const hours = Math.floor((notAfterMs - now) / 3600_000);
  const left = hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
  return `${what} expires in ${left}, on ${on}: ${remedy}`;
}

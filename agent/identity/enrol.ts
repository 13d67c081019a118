/**
 * Asks for a certificate until there is one, or a refusal that stays.
 *
 * Decides when to ask again. How is `ask`'s business.
 *
 * @module
 */

import { isSlip } from "../../platform/errors/internal_errors.ts";
import type { EnrolmentOutcome } from "../../proto/identity/enrolment.ts";
import type { Enrolment } from "../../proto/identity/identity_messages.ts";
import { supervise } from "../../platform/time/supervise.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { EnrolmentError, isDefinite, sentenceOf } from "./enrolment_error.ts";

/** Longest wait between attempts. */
const CAP_MS = 10_000;
/** A server that says "at once" is asked no more often than this. */
const PENDING_MS_MIN = 1_000;
/** Nor one that names next year forgotten. */
const PENDING_MS_MAX = 60_000;

/** What asking needs from outside. */
export interface EnrolOptions {
  ask(): Promise<EnrolmentOutcome>;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** False: a connection that fails ends it too, as a person would want. */
  readonly isPatient: boolean;
  /** Asked again after `retryMs`, because of `reason`. */
  waiting(reason: string, retryMs: number): void;
}

/**
 * @throws {EnrolmentError} When asking again is of no use; when not patient, also
 *   when no server could be reached.
 */
export async function enrol(
  options: EnrolOptions,
): Promise<Enrolment> {
  const { ask, timers, random, isPatient, waiting } = options;
  let got: Enrolment | undefined;
  await supervise<string>({
    timers,
    random,
    capMs: CAP_MS,
    signal: new AbortController().signal, // Nobody stops it but the answer.
    async run(run) {
      const { enrolment, pending } = await ask();
      got = enrolment;
      if (enrolment !== undefined) return "done";
      run.succeeded();
      const retryMs = Math.max(
        PENDING_MS_MIN,
        Math.min(pending.retryAfterMs, PENDING_MS_MAX),
      );
      waiting(pending.reason, retryMs);
      return { afterMs: retryMs };
    },
    problemOf(error) {
      if (isSlip(error)) throw error;
      const reason = sentenceOf(error);
      if (isPatient && !isDefinite(error)) return reason;
      throw new EnrolmentError(reason, { cause: error });
    },
    onProblem: waiting,
  });
  return got!;
}

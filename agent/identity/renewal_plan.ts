/**
 * When a certificate is to be renewed.
 *
 * By the wall clock, because a certificate's dates are of that; and by elapsed
 * time beside it, because wall clocks of nodes are set, lost and found again.
 *
 * @module
 */

import {
  type CertificateFacts,
  CLOCK_SKEW_MS,
  isSignedBy,
  RENEWAL_FRACTION,
} from "../../platform/pki/certificate.ts";

/** The part over which nodes that joined at the same time spread out. */
const RENEWAL_SPREAD = 1 / 15;

/** Both clocks. */
export interface ClockReading {
  /** Milliseconds since 1970, as the machine has it. */
  readonly wallMs: number;
  /** Never goes back, and may stand still while the machine sleeps. */
  readonly elapsedMs: number;
}

/** What is known about a certificate in use. */
export interface HeldCertificate {
  readonly facts: CertificateFacts;
  /** When this process got it; absent: it was there at the start. */
  readonly obtained?: ClockReading;
  /** Uniform in [0, 1): where in the spread this one stands. */
  readonly share: number;
}

/** Parts of a certificate's life. */
interface RenewalTime {
  readonly fraction: number;
  readonly spread: number;
}

const OWN_TIME: RenewalTime = {
  fraction: RENEWAL_FRACTION,
  spread: RENEWAL_SPREAD,
};

/** Milliseconds until it is to be renewed; not above zero: now. */
export function untilRenewal(
  held: HeldCertificate,
  at: ClockReading,
  { fraction, spread }: RenewalTime = OWN_TIME,
): number {
  // It was good once: the clock has gone back, and can say nothing.
  if (held.obtained === undefined && at.wallMs < held.facts.notBeforeMs) {
    return 0;
  }
  const part = fraction + spread * held.share;
  return lifeMs(held.facts) * part - ageMs(held, at);
}

/** Whether servers would refuse it. */
export function hasExpired(held: HeldCertificate, at: ClockReading): boolean {
  return ageMs(held, at) >= lifeMs(held.facts);
}

/**
 * How old it is by whichever clock has gone further. One that came just now is
 * new, whatever this machine believes the date to be: compared with its dates,
 * a clock that is wrong would have it renewed for ever.
 */
function ageMs({ facts, obtained }: HeldCertificate, at: ClockReading): number {
  if (obtained === undefined) return at.wallMs - issuedAt(facts);
  return Math.max(
    at.wallMs - obtained.wallMs,
    at.elapsedMs - obtained.elapsedMs,
  );
}

function lifeMs(facts: CertificateFacts): number {
  return facts.notAfterMs - issuedAt(facts);
}

/** Whether it is of the authority that issues now: the first of a bundle. */
export function isOfFirst(
  { x509 }: CertificateFacts,
  [first]: readonly CertificateFacts[],
): boolean {
  return first === undefined || isSignedBy(x509, first.x509);
}

/** Certificates begin in the past, because clocks differ. */
function issuedAt({ notBeforeMs, notAfterMs }: CertificateFacts): number {
  const issuedMs = notBeforeMs + CLOCK_SKEW_MS;
  return issuedMs < notAfterMs ? issuedMs : notBeforeMs;
}

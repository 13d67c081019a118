/**
 * When a certificate is to be renewed.
 *
 * By the wall clock, because a certificate's dates are of that; and by elapsed
 * time beside it, because wall clocks of nodes are set, lost and found again.
 *
 * @module
 */

import { CLOCK_SKEW_MS } from "../../host/pki/authority.ts";
import {
  type CertificateFacts,
  isSignedBy,
} from "../../host/pki/certificate.ts";

/** The part of its life after which a certificate is renewed. */
export const RENEWAL_FRACTION = 2 / 3;
/** The part over which nodes that joined at the same time spread out. */
export const RENEWAL_SPREAD = 1 / 15;

/** What is known about a certificate in use. */
export interface HeldCertificate {
  readonly facts: CertificateFacts;
  /** When this process got it, on the monotonic clock; absent: it was there. */
  readonly obtainedMs?: number;
  /** Uniform in [0, 1): where in the spread this one stands. */
  readonly share: number;
}

/** Both clocks. */
export interface Moment {
  /** Milliseconds since 1970, as the machine has it. */
  readonly wallMs: number;
  readonly elapsedMs: number;
}

/** Milliseconds until it is to be renewed; not above zero: now. */
export function untilRenewal(held: HeldCertificate, at: Moment): number {
  const { facts, obtainedMs, share } = held;
  const issuedMs = issuedAt(facts);
  const afterMs = (facts.notAfterMs - issuedMs) *
    (RENEWAL_FRACTION + RENEWAL_SPREAD * share);
  const byWallMs = issuedMs + afterMs - at.wallMs;
  if (obtainedMs === undefined) {
    // It was good once: the clock has gone back, and can say nothing.
    return at.wallMs < facts.notBeforeMs ? 0 : byWallMs;
  }
  return Math.min(byWallMs, obtainedMs + afterMs - at.elapsedMs);
}

/** Whether servers would refuse it. */
export function hasExpired(
  { notAfterMs }: CertificateFacts,
  { wallMs }: Moment,
): boolean {
  return wallMs >= notAfterMs;
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

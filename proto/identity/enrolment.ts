/**
 * What identity calls may carry, and what they end with.
 *
 * @module
 */

import type { Enrolment, Pending } from "./identity_messages.ts";

/**
 * The longest request and answer. A certificate signing request has less than 1
 * KiB, a bundle of two authorities 2 KiB; an unauthenticated peer gets no more.
 */
export const IDENTITY_MESSAGE_BYTES_MAX = 65_536;

/** What Join and Renew end with: exactly one of the two. */
export type EnrolmentOutcome =
  | { readonly enrolment: Enrolment; readonly pending?: undefined }
  | { readonly pending: Pending; readonly enrolment?: undefined };

/**
 * Cases of h2spec 2.2.1 that we do not want to pass, each with the reason.
 *
 * h2spec was written against RFC 7540; where RFC 9113 says otherwise we follow
 * RFC 9113. A case here that passes is a failure, so the list cannot rot.
 *
 * @module
 */

export interface Exception {
  /** Section and title, as `h2spec.ts` prints them. */
  readonly case: string;
  /** Which arrangements it holds for; all when left out. */
  readonly arrangements?: readonly string[];
  readonly reason: string;
}

export const EXCEPTIONS: readonly Exception[] = [];

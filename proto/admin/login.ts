/**
 * How somebody who may use the admin API lets a browser in: a code that is good
 * once and for a minute, which the browser changes into a cookie.
 *
 * @module
 */

import type { AdminRole } from "./api.ts";

/** `POST /v1/logins` */
export interface LoginQuestion {
  /** What the browser may; absent: what who asks may. */
  readonly role?: AdminRole;
}

/** Its answer. */
export interface LoginAnswer {
  readonly code: string;
  readonly expiresAt: string;
  /** To be opened in a browser of the same machine; the code is in its fragment. */
  readonly url: string;
}

/** `POST /v1/session`: sets a cookie. Nobody needs to be known to ask it. */
export interface SessionQuestion {
  readonly code: string;
}

/** Its answer, and that of `GET /v1/session`: as whom who asks is known. */
export interface SessionAnswer {
  readonly name: string;
  readonly role: AdminRole;
}

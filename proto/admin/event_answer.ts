/**
 * What has happened lately, as people are told of it.
 *
 * @module
 */

/** One thing that happened. */
export interface EventInfo {
  readonly at: string;
  readonly kind:
    | "linked"
    | "unlinked"
    | "refused"
    | "dial-failed"
    | "joined"
    | "revoked"
    | "approved"
    | "drain"
    | "certificate"
    | "duplicate"
    | "reload"
    | "warning";
  /** A stable code that `tunnel explain` knows. */
  readonly code?: string;
  readonly message: string;
  readonly node?: string;
  /** How often it came in a row; absent: once. */
  readonly times?: number;
}

/** `GET /v1/events`, with `?node=`, `?kind=`, `?limit=`: newest first. */
export interface EventsAnswer {
  readonly events: readonly EventInfo[];
}

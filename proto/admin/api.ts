/**
 * The admin API: what a program of ours is asked about itself, over HTTP with
 * JSON. Here is what both ends agree on, paths and answers; who may ask, and how
 * it is carried, are not known here.
 *
 * Version 1 may get new paths and new fields. What is there stays, and means the
 * same: clients ignore fields that they do not know.
 *
 * Conventions: times are RFC 3339 in UTC, durations end in `Ms`, sizes in
 * `Bytes`, rates are bytes a second. A field that is absent is not known. Lists
 * are in the order in which people want to read them.
 *
 * @module
 */

/** In front of every path. */
export const ADMIN_API = "/v1";

/** What may be asked (GET). `NAME` and `ID` are one percent-encoded segment. */
export const ADMIN_PATHS = {
  /** `StatusAnswer`; all programs. */
  status: "/v1/status",
  /** `NodesAnswer`; servers. */
  nodes: "/v1/nodes",
  /** `/v1/nodes/NAME`: `NodeDetail`; servers. */
  node: "/v1/nodes/",
  /** `ConduitsAnswer`; all programs. */
  conduits: "/v1/conduits",
  /** `/v1/conduits/ID`: `ConduitInfo`. */
  conduit: "/v1/conduits/",
  /** `EventsAnswer`; all programs. */
  events: "/v1/events",
  /** `HistoryAnswer`; servers. */
  history: "/v1/history",
  /** Server-sent events, see `watch.ts`; servers. */
  watch: "/v1/watch",
  /** `ServicesAnswer`; servers with discovery, and proxies. */
  services: "/v1/services",
  /** `DiscoveryAnswer`; servers with discovery. */
  discovery: "/v1/discovery",
  /** `CertificatesAnswer`; all programs. */
  certificates: "/v1/certificates",
  /** `AuditAnswer`: the last entries; servers and agents with an audit log. */
  audit: "/v1/audit",
  /** `ConfigAnswer`: flags as they are in effect, without secrets. */
  config: "/v1/config",
  /** `SessionAnswer`: as whom who asks is known; all programs. */
  session: "/v1/session",
} as const;

/**
 * What may be done (POST), each with a JSON body, `{}` where nothing is said.
 * Answers `ActionAnswer` unless another is named.
 */
export const ADMIN_ACTIONS = {
  /** `/v1/conduits/ID/kill` */
  kill: "kill",
  /** `/v1/nodes/NAME/drain`: its agents are asked to link elsewhere. */
  drain: "drain",
  /** `/v1/nodes/NAME/revoke`, body `{ reason?: string }` */
  revoke: "revoke",
  /** `/v1/nodes/NAME/approve` */
  approve: "approve",
  /** `/v1/nodes/NAME/ping`: answers `PingAnswer`. */
  ping: "ping",
  /** `/v1/trace`, body `TraceQuestion`: answers `TraceAnswer`. */
  trace: "trace",
  /** `/v1/policy/test`, body `PolicyQuestion`: answers `PolicyAnswer`. */
  policyTest: "policy/test",
  /** `/v1/logins`, body `LoginQuestion`: answers `LoginAnswer`. */
  logins: "logins",
  /** `/v1/session`, body `{code}`: answers `SessionAnswer`. */
  session: "session",
  /** `/v1/session/end`: the browser's cookie is good no more. */
  endSession: "session/end",
} as const;

/** What somebody may do here. */
export type AdminRole =
  /** Ask. */
  | "view"
  /** Ask, and do. */
  | "operate";

/** Every answer that is no success (status 400 and above). */
export interface AdminProblem {
  /** A stable code that `tunnel explain` knows, where there is one. */
  readonly code?: string | undefined;
  /** One sentence: what was seen, what was wanted, what to do. */
  readonly message: string;
}

/** `GET /v1`: what this program answers, and what it takes. */
export interface IndexAnswer {
  /** In front of every path. */
  readonly version: 1;
  readonly paths: readonly {
    readonly method: "GET" | "POST";
    /** With one `:segment` where a name or an id is. */
    readonly path: string;
    readonly role: AdminRole;
  }[];
}

/** That something was done. */
export interface ActionAnswer {
  /** One sentence. */
  readonly message: string;
}

// How somebody who may use the admin API lets a browser in: a code that is good
// once and for a minute, which the browser changes into a cookie.

/** `POST /v1/logins` */
export interface LoginQuestion {
  /** What the browser may; absent: what who asks may. */
  readonly role?: AdminRole | undefined;
}

/** Its answer. */
export interface LoginAnswer {
  readonly code: string;
  readonly expiresAt: string;
  /** To be opened in a browser of the same machine; the code is in its fragment. */
  readonly url: string;
}

/** Of `POST /v1/session {code}`, which sets a cookie, and of `GET`: who asks. */
export interface SessionAnswer {
  readonly name: string;
  readonly role: AdminRole;
}

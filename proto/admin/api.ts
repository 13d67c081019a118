/**
 * The admin API: the questions that a program of ours answers about itself,
 * over HTTP with JSON. This file has the paths and answers that both ends agree
 * on; it knows neither the rights of callers nor the transport.
 *
 * Version 1 may get new paths and new fields. Existing ones stay, with the same
 * meaning: clients ignore fields that they do not know.
 *
 * Conventions: times are RFC 3339 in UTC, durations end in `Ms`, sizes in
 * `Bytes`, rates are bytes a second. An absent field is unknown. Lists are
 * sorted for human readers.
 *
 * @module
 */

/** Prefix of every path. */
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
  /** `SessionAnswer`: the caller's identity; all programs. */
  session: "/v1/session",
} as const;

/**
 * Actions (POST), each with a JSON body, `{}` by default. The answer is
 * `ActionAnswer` unless another is named.
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

/** The caller's rights. */
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

/** `GET /v1`: the paths that this program answers, and their parameters. */
export interface IndexAnswer {
  /** Prefix of every path. */
  readonly version: 1;
  readonly paths: readonly {
    readonly method: "GET" | "POST";
    /** With one `:segment` in the place of a name or an id. */
    readonly path: string;
    readonly role: AdminRole;
  }[];
}

/** That something was done. */
export interface ActionAnswer {
  /** One sentence. */
  readonly message: string;
}

// How a user of the admin API signs a browser in: a code that is valid once and
// for a minute, which the browser exchanges for a cookie.

/** `POST /v1/logins` */
export interface LoginQuestion {
  /** The browser's rights; absent: the caller's. */
  readonly role?: AdminRole | undefined;
}

/** Its answer. */
export interface LoginAnswer {
  readonly code: string;
  readonly expiresAt: string;
  /** A URL for a browser on the same machine; the code is in its fragment. */
  readonly url: string;
}

/**
 * Answer of `POST /v1/session {code}`, which sets a cookie, and of `GET`, which
 * names the user.
 */
export interface SessionAnswer {
  readonly name: string;
  readonly role: AdminRole;
}

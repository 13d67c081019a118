/**
 * What is known of one tunneled connection.
 *
 * @module
 */

/** One conduit, as the program that is asked sees it. */
export interface ConduitInfo {
  /** The same in the logs, audits and answers of all programs that it passes. */
  readonly id: string;
  readonly state: "dialing" | "open" | "closing";
  /** Who asked for it. */
  readonly caller: string;
  /** `HOST:PORT`, or a socket's path. */
  readonly from?: string;
  readonly node?: string;
  /** Another server that has that node's agent. */
  readonly forwardedTo?: string;
  readonly service?: string;
  /** Such as `tcp 10.0.0.7:5432`. */
  readonly target: string;
  readonly startedAt: string;
  readonly ageMs: number;
  /** How long its dial took. */
  readonly dialMs?: number;
  readonly toTargetBytes: number;
  readonly fromTargetBytes: number;
  /** Of the last ten seconds. */
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** Of the link that carries it. */
  readonly roundTripMs?: number;
  /** What the other end may send, and what waits here to be passed on. */
  readonly windowBytes?: number;
  readonly queuedBytes?: number;
  /** Why nothing moves, such as `the caller does not read`; absent: it may. */
  readonly waitsFor?: "caller" | "target" | "link" | "dial" | "nothing";
  /** Since anything moved. */
  readonly idleMs: number;
}

/**
 * `GET /v1/conduits`, with `?node=`, `?caller=`, `?target=`, `?service=`,
 * `?sort=rate|bytes|age|idle|queue` and `?limit=`; the biggest of `sort` first,
 * `rate` and 100 unless said.
 */
export interface ConduitsAnswer {
  readonly conduits: readonly ConduitInfo[];
  /** How many there are that are asked for, whatever the limit. */
  readonly total: number;
}

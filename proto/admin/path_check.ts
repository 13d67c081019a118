/**
 * A path walked hop by hop: what `tunnel doctor`, `ping` and `trace` find out,
 * and what a server finds out for them.
 *
 * @module
 */

/** One hop, or one thing that was looked at. */
export interface PathStep {
  /** Such as `dns`, `tcp`, `proxy`, `tls`, `policy`, `agent dial`, `target`. */
  readonly hop: string;
  readonly outcome: "ok" | "failed" | "skipped" | "warning";
  /** What was seen, one sentence. */
  readonly message: string;
  /** The code of a failure or a warning. */
  readonly code?: string | undefined;
  /** The command, or the change, that mends it. */
  readonly remedy?: string | undefined;
  readonly tookMs?: number | undefined;
}

/** `POST /v1/nodes/NAME/ping`: over each of its links, and in its agent. */
export interface PingAnswer {
  readonly node: string;
  readonly links: readonly {
    readonly address: string;
    readonly carrier: "streams" | "packets";
    readonly roundTripMs?: number | undefined;
    readonly problem?: string | undefined;
  }[];
}

/** `POST /v1/trace`: a dial that carries nothing. */
export interface TraceQuestion {
  readonly node?: string | undefined;
  /** `HOST:PORT` */
  readonly target: string;
  /** The caller whose rights count; absent: the sender's. */
  readonly as?: string | undefined;
}

/** The hops from this server to the target. */
export interface TraceAnswer {
  readonly steps: readonly PathStep[];
}

/** `POST /v1/policy/test` */
export interface PolicyQuestion {
  /** User name of a certificate, or `node:NAME`. */
  readonly as: string;
  readonly groups?: readonly string[] | undefined;
  readonly node?: string | undefined;
  readonly target: string;
}

/** Which rule decides. */
export interface PolicyAnswer {
  readonly isAllowed: boolean;
  /** The rule's name in the log; absent: no rule matched. */
  readonly rule?: string | undefined;
  /** `file:line` of it, where it is known. */
  readonly place?: string | undefined;
  /** One sentence. */
  readonly message: string;
}

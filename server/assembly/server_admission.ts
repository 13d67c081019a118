/**
 * Who may connect to a server, how many may, and which counter rises when a
 * limit is reached: `net/admission` with this server's metrics and log.
 *
 * @module
 */

import { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import {
  type ConnectionLimit,
  type LimitConfig,
  limitPlan,
  type LimitScope,
} from "../../net/admission/connection_limits.ts";
import type { CountingTools } from "../../platform/program/tools.ts";
import { descriptorLimit } from "../../net/libc/descriptors.ts";
import { errorCodeName, WireError } from "../../proto/frames/wire_error.ts";
import { ExcessError } from "../../proto/streams/abuse_limits.ts";
import type { ConnectionEnd } from "../../proto/streams/connection_events.ts";
import { SaidOnce } from "../links/authorizer.ts";
import { SERVER_PREFIX, shownGauge } from "../metrics/metric_families.ts";

/** A flood is logged once in this time, and counted all the time. */
const LOGGED_EVERY_MS = 60_000;

/** Which port a peer came to. */
export type PortName = "agents" | "frontends" | "http";

/** A limit that made the server refuse or end something. */
export interface ReachedLimit {
  readonly limit: ConnectionLimit;
  readonly scope: LimitScope;
  /** When it did last, by the clock. */
  readonly atMs: number;
  readonly times: number;
}

/** Admission to all ports of one server. */
export class ServerLimiter {
  readonly limiter: ConnectionLimiter;
  readonly #reached;
  readonly #faults;
  readonly #penalties;
  readonly #logged: SaidOnce;
  /** When each was reached last, and how often. */
  readonly #lately = new Map<string, ReachedLimit>();
  #penaltiesUnlogged = 0;

  constructor(
    config: LimitConfig,
    private readonly tools: CountingTools,
  ) {
    const { metrics, timers } = tools;
    this.#logged = new SaidOnce(() => timers.now(), LOGGED_EVERY_MS);
    this.#reached = metrics.labelled(
      "counter",
      `${SERVER_PREFIX}limits_reached_total`,
      "Connections, calls and heads that a shared limit cost, by limit and " +
        "by whether one source or all together had reached it.",
      ["limit", "scope"],
    );
    this.#faults = metrics.labelled(
      "counter",
      `${SERVER_PREFIX}peer_faults_total`,
      "HTTP/2 connections ended because the peer broke a rule, by port, error " +
        "code, and what it overdid (empty: nothing).",
      ["port", "code", "excess"],
    );
    this.#penalties = metrics.series(
      "counter",
      `${SERVER_PREFIX}penalized_sources_total`,
      "Sources of which only one connection a second is admitted for a while, " +
        "because those before broke rules.",
    );
    this.limiter = new ConnectionLimiter({
      plan: limitPlan(config, descriptorLimit()),
      clock: timers,
      reached: (limit, scope) => this.reached(limit, scope),
      penalized: (source) => this.#penalized(source),
    });
    shownGauge(
      metrics,
      "connections",
      "Connections on all ports.",
      () => this.limiter.connections,
    );
    shownGauge(
      metrics,
      "unauthenticated_connections",
      "Connections whose peer has not shown who it is.",
      () => this.limiter.unauthenticated,
    );
  }

  /** Those that were ever reached. */
  get reachedLimits(): Iterable<ReachedLimit> {
    return this.#lately.values();
  }

  /** A limit was reached: something was refused or ended. */
  reached(
    limit: ConnectionLimit,
    scope: LimitScope,
  ): void {
    this.#reached.with(limit, scope).add();
    const key = `${limit} ${scope}`;
    const { times = 0 } = this.#lately.get(key) ?? {};
    const atMs = this.tools.timers.now();
    this.#lately.set(key, { limit, scope, atMs, times: times + 1 });
    if (!this.#logged.isNew(key)) return;
    this.tools.log.warn(
      `too many ${limit.replace("_", " ")} of ` +
        `${scope === "all" ? "all sources together" : "one source"}: ` +
        "some are refused or ended; see tunnel_server_limits_reached_total",
      { code: "TUN409" },
    );
  }

  /** A source is slowed down, for its faults. */
  #penalized(source: string): void {
    this.#penalties.add();
    if (!this.#logged.isNew("penalized")) return void this.#penaltiesUnlogged++;
    const others = this.#penaltiesUnlogged === 0
      ? ""
      : `, as from ${this.#penaltiesUnlogged} other sources since the last such line`;
    this.#penaltiesUnlogged = 0;
    this.tools.log.warn(
      `peers from ${source} break rules: one connection a second is admitted ` +
        `from there until they stop${others}; see ` +
        "tunnel_server_peer_faults_total",
      { code: "TUN417" },
    );
  }

  /** An HTTP/2 connection is over. */
  ended(port: PortName, { error }: ConnectionEnd): void {
    if (!(error instanceof WireError)) return;
    const excess = error instanceof ExcessError ? error.excess : "";
    this.#faults.with(port, errorCodeName(error.code), excess).add();
  }
}

/**
 * Who may connect to a server, how many of them, and what is counted when a
 * limit is reached: `net/admission` with this server's metrics and log.
 *
 * @module
 */

import { Intake } from "../../net/admission/intake.ts";
import {
  type IntakeLimit,
  intakePlan,
  type IntakeScope,
  type IntakeWish,
} from "../../net/admission/intake_limits.ts";
import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { descriptorLimit } from "../../net/libc/descriptor_limit.ts";
import { errorCodeName, WireError } from "../../proto/frames/wire_error.ts";
import { ExcessError } from "../../proto/streams/abuse_limits.ts";
import type { ConnectionEnd } from "../../proto/streams/connection_events.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";

/** A flood is logged once in this time, and counted all the time. */
const LOGGED_EVERY_MS = 60_000;

/** Which port a peer came to. */
export type PortName = "agents" | "frontends" | "http";

/** Admission to all ports of one server. */
export class ServerIntake {
  readonly intake: Intake;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #reached;
  readonly #faults;
  readonly #brakes;
  readonly #loggedMs = new Map<string, number>();
  #brakesUnlogged = 0;

  constructor(
    wish: IntakeWish,
    parts: {
      readonly log: Log;
      readonly metrics: MetricRegistry;
      readonly clock: Clock;
    },
  ) {
    const { metrics, clock } = parts;
    this.#log = parts.log;
    this.#clock = clock;
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
    this.#brakes = metrics.series(
      "counter",
      `${SERVER_PREFIX}sources_braked_total`,
      "Sources of which only one connection a second is let in for a while, " +
        "because those before broke rules.",
    );
    this.intake = new Intake({
      plan: intakePlan(wish, descriptorLimit()),
      clock,
      reached: (limit, scope) => this.reached(limit, scope),
      braked: (source) => this.#braked(source),
    });
    const gauge = (name: string, help: string, value: () => number) =>
      metrics.computed("gauge", `${SERVER_PREFIX}${name}`, help, value);
    gauge(
      "connections",
      "Connections on all ports.",
      () => this.intake.connections,
    );
    gauge(
      "unauthenticated_connections",
      "Connections whose peer has not shown who it is.",
      () => this.intake.unauthenticated,
    );
  }

  /** A limit was reached: something was refused or ended. */
  reached(limit: IntakeLimit | "http_connections", scope: IntakeScope): void {
    this.#reached.with(limit, scope).add();
    if (!this.#mayLog(`${limit} ${scope}`)) return;
    this.#log.warn(
      `too many ${limit.replace("_", " ")} of ` +
        `${scope === "all" ? "all sources together" : "one source"}: ` +
        "some are refused or ended; see tunnel_server_limits_reached_total",
    );
  }

  /** A source is slowed down, for its faults. */
  #braked(source: string): void {
    this.#brakes.add();
    if (!this.#mayLog("braked")) return void this.#brakesUnlogged++;
    const others = this.#brakesUnlogged === 0
      ? ""
      : `, as from ${this.#brakesUnlogged} other sources since the last such line`;
    this.#brakesUnlogged = 0;
    this.#log.warn(
      `peers from ${source} break rules: one connection a second is let in ` +
        `from there until they stop${others}; see ` +
        "tunnel_server_peer_faults_total",
    );
  }

  #mayLog(key: string): boolean {
    const nowMs = this.#clock.now();
    const loggedMs = this.#loggedMs.get(key) ?? -Infinity;
    if (nowMs - loggedMs < LOGGED_EVERY_MS) return false;
    this.#loggedMs.set(key, nowMs);
    return true;
  }

  /** An HTTP/2 connection is over. */
  ended(port: PortName, { error }: ConnectionEnd): void {
    if (!(error instanceof WireError)) return;
    const excess = error instanceof ExcessError ? error.excess : "";
    this.#faults.with(port, errorCodeName(error.code), excess).add();
  }
}

/**
 * What the admin API is told of a server: collects it from the parts.
 *
 * @module
 */

import { hostname } from "node:os";
import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { code } from "../../net/admin/own_facts.ts";
import { cpuSeconds } from "../../platform/metrics/process_metrics.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { VERSION } from "../../platform/process/version.ts";
import type { ProgramInfo, Warning } from "../../proto/admin/status_answer.ts";
import { type ServerAdmin, serverAdmin } from "../admin/admin_routes.ts";
import type { ServerDiscovery } from "../discovery/server_discovery.ts";
import type { Readiness } from "./readiness.ts";
import type { ServerAgents } from "./server_agents.ts";
import type { ServerCore } from "./server_core.ts";

/** A limit that was reached so lately is worth a warning. */
const LIMIT_MS = 600_000;

/** The other parts of the server. */
export interface AdminParts {
  readonly core: ServerCore;
  readonly agents: ServerAgents;
  readonly readiness: Readiness;
  readonly discovery: ServerDiscovery | undefined;
  readonly isDraining: () => boolean;
}

/** The admin API of one server. */
export class ServerAdminApi {
  readonly #startedMs = Date.now();
  readonly #host = hostname();
  readonly #admin: ServerAdmin;
  /** Set once the server listens. */
  addresses: Readonly<Record<string, string>> = {};

  constructor(private readonly parts: AdminParts) {
    const { core, agents, discovery } = parts;
    const { options, authorization, metrics } = core;
    const { identity } = agents;
    const { audited } = authorization;
    this.#admin = serverAdmin({
      serverId: options.serverId,
      timers: systemTimers,
      registry: core.registry,
      conduits: core.conduits,
      events: core.events,
      history: agents.history,
      files: core.files,
      peers: core.peers,
      ...(identity === undefined ? {} : { identity }),
      ...(discovery === undefined ? {} : { discovery }),
      program: () => this.#program(),
      pendingDials: () => metrics.pendingDials,
      duplicates: () => agents.duplicates,
      warnings: () => [...this.#warnings()],
      ...(options.shownFlags === undefined
        ? {}
        : { flags: options.shownFlags }),
      ...(audited === undefined ? {} : { audit: audited }),
      drain: (link) => agents.drainLink(link),
    });
  }

  get routes(): readonly AdminRoute[] {
    return this.#admin.routes;
  }

  stop(): void {
    this.#admin.stop();
  }

  #program(): ProgramInfo {
    const { core, readiness, isDraining } = this.parts;
    return {
      program: "server",
      id: core.options.serverId,
      host: this.#host,
      version: VERSION,
      pid: Deno.pid,
      startedAt: new Date(this.#startedMs).toISOString(),
      now: new Date().toISOString(),
      isReady: readiness.problem() === undefined,
      isDraining: isDraining(),
      addresses: this.addresses,
      residentBytes: Deno.memoryUsage().rss,
      cpuSeconds: cpuSeconds(),
    };
  }

  *#warnings(): Iterable<Warning> {
    const { core, readiness } = this.parts;
    const problem = readiness.problem();
    if (problem !== undefined) {
      yield {
        code: code("TUN501"),
        severity: "error",
        message: `This server is not ready: ${problem}; callers are refused ` +
          "until an agent is linked (tunnel node list)",
      };
    }
    const nowMs = systemTimers.now();
    for (const { limit, scope, atMs, times } of core.limiter.reachedLimits) {
      if (nowMs - atMs > LIMIT_MS) continue;
      yield {
        code: code("TUN409"),
        severity: "warning",
        message: `Too many ${limit.replace("_", " ")} of ` +
          (scope === "all" ? "all sources together" : "one source") +
          `: ${times} were refused or ended since the start, the last ` +
          `${Math.round((nowMs - atMs) / 1_000)} s ago; see ` +
          "tunnel_server_limits_reached_total",
      };
    }
    if (core.options.agents.allowAnonymous) {
      yield {
        code: code("TUN319"),
        severity: "notice",
        message: "Agents need no certificate: anybody who can connect to " +
          `${this.addresses["agents"] ?? "the agent port"} may become an ` +
          "agent and get connections",
      };
    }
    const behind = core.conduits.latenessMs;
    if (behind < LATE_MS) return;
    yield {
      code: code("TUN920"),
      severity: "warning",
      message:
        `The server was busy for ${Math.round(behind)} ms at a stretch ` +
        "in the last seconds: it has too little processor time, or too much " +
        "to do; add a server, or --workers",
    };
  }
}

/** A loop that is so late makes everybody wait. */
const LATE_MS = 250;

/**
 * A server as people see it: its routes of the admin API and the dashboard,
 * answered out of the parts that it hands over.
 *
 * @module
 */

import { hostname } from "node:os";
import { code } from "../../net/admin/own_facts.ts";
import { workerFacts } from "../../net/admin/own_group.ts";
import { cpuSeconds } from "../../platform/metrics/process_metrics.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { VERSION } from "../../platform/process/version.ts";
import type { ProgramInfo, Warning } from "../../proto/admin/status_answer.ts";
import { serverAdmin } from "./admin_routes.ts";
import type {
  ServerParts,
  ShownServer,
} from "../../server/assembly/server_admin_port.ts";
import { withDashboard } from "./dashboard.ts";
import { pingRoute } from "./ping_route.ts";
import { policyRoute } from "./policy_route.ts";
import { traceRoute } from "./trace_route.ts";

/** A limit that was reached so lately is worth a warning. */
const LIMIT_MS = 600_000;

/** What a server shows, and where it may be asked about ways and dials. */
export function showServer(parts: ServerParts): ShownServer {
  const { core, agents, discovery } = parts;
  const { options, authorization, metrics, registry, peers } = core;
  const { identity } = agents;
  const { audited } = authorization;
  const { listen } = options.frontend;
  const ways = { registry, timers: systemTimers };
  const host = hostname();
  const admin = serverAdmin({
    ...ways,
    serverId: options.serverId,
    conduits: core.program.conduits,
    events: core.program.events,
    history: agents.history,
    files: core.program.files,
    peers,
    ...(identity === undefined ? {} : { identity }),
    ...(discovery === undefined ? {} : { discovery }),
    program: () => programOf(parts, host),
    pendingDials: () => metrics.pendingDials,
    duplicates: () => agents.duplicates,
    warnings: () => [...warningsOf(parts)],
    ...(options.shownFlags === undefined ? {} : { flags: options.shownFlags }),
    ...(audited === undefined ? {} : { audit: audited }),
    drain: (link) => agents.drainLink(link),
  });
  return {
    routes: [
      ...admin.routes,
      pingRoute(ways),
      policyRoute({ authorization, registry }),
      traceRoute({
        ...ways,
        peers,
        authorizer: authorization.dials,
        socket: listen.kind === "unix" ? listen.path : "",
      }),
    ],
    pages: withDashboard,
    stop: () => admin.stop(),
  };
}

const STARTED_AT = new Date().toISOString();

function programOf(
  { core, readiness, isDraining, addresses }: ServerParts,
  host: string,
): ProgramInfo {
  return {
    program: "server",
    id: core.options.serverId,
    host,
    version: VERSION,
    pid: Deno.pid,
    ...workerFacts(),
    startedAt: STARTED_AT,
    now: new Date().toISOString(),
    isReady: readiness.problem() === undefined,
    isDraining: isDraining(),
    addresses: addresses(),
    residentBytes: Deno.memoryUsage().rss,
    cpuSeconds: cpuSeconds(),
  };
}

function* warningsOf(
  { core, readiness, addresses }: ServerParts,
): Iterable<Warning> {
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
      code: code("TUN333"),
      severity: "notice",
      message: "Agents need no certificate: anybody who can connect to " +
        `${addresses()["agents"] ?? "the agent port"} may become an ` +
        "agent and get connections",
    };
  }
  const behind = core.program.conduits.latenessMs;
  if (behind < LATE_MS) return;
  yield {
    code: code("TUN920"),
    severity: "warning",
    message: `The server was busy for ${Math.round(behind)} ms at a stretch ` +
      "in the last seconds: it has too little processor time, or too much " +
      "to do; add a server, or --workers",
  };
}

/** A loop that is so late makes everybody wait. */
const LATE_MS = 250;

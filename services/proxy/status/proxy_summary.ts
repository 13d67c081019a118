/**
 * A proxy at a glance: a summary of its services, the problems of ports and
 * endpoints, its discovery server, and what operators should look at.
 *
 * @module
 */

import { code } from "../../../net/admin/own_facts.ts";
import type {
  StatusAnswer,
  Warning,
} from "../../../proto/admin/status_answer.ts";
import type { DiscoveryStatus } from "../ads/ads_source.ts";
import type { Proxy } from "../ports/proxy.ts";
import {
  clipped,
  type EndpointUse,
  type PortStatus,
  proxyStatus,
} from "./proxy_status.ts";

/** Of a status. */
const PROBLEMS_MAX = 20;

type Services = NonNullable<StatusAnswer["services"]>;

/** Endpoints that get no connections although they are there. */
const WRONG: ReadonlySet<EndpointUse> = new Set(["ill", "ejected"]);

/** For `/v1/status`. */
export function proxyParts(
  proxy: Proxy,
  discovery: DiscoveryStatus | undefined,
): Pick<StatusAnswer, "services" | "follows" | "sources"> {
  const { sources, services } = proxyStatus(proxy);
  return {
    services: summaryOf(services),
    ...discovery === undefined ? {} : { follows: followsOf(discovery) },
    sources: sources.map(({ name, isSynced, problem }) => ({
      name,
      isSynced,
      ...problem === undefined ? {} : { problem: clipped(problem) },
    })),
  };
}

function summaryOf(ports: Iterable<PortStatus>): Services {
  const services = new Set<string>();
  const problems: Services["problems"][number][] = [];
  let [portCount, endpoints, endpointsInUse] = [0, 0, 0];
  for (const port of ports) {
    services.add(port.service);
    portCount++;
    const inUse = port.endpoints.filter(({ use }) => use === "in use").length;
    endpoints += port.endpoints.length;
    endpointsInUse += inUse;
    for (const problem of problemsOf(port, inUse)) {
      if (problems.length < PROBLEMS_MAX) problems.push(problem);
    }
  }
  return {
    ...{ services: services.size, ports: portCount },
    ...{ endpoints, endpointsInUse, problems },
  };
}

/** The port's problem comes first: it is worse. */
function* problemsOf(
  port: PortStatus,
  inUse: number,
): Iterable<Services["problems"][number]> {
  const { name: service, problem } = port;
  if (problem !== undefined) {
    yield { service, problem };
  } else if (port.endpoints.length === 0) {
    yield {
      service,
      problem: "it has no endpoints: clients that connect are refused",
    };
  } else if (inUse === 0) {
    yield { service, problem: "none of its endpoints can be used" };
  }
  for (const { address, use, why = use } of port.endpoints) {
    if (WRONG.has(use)) yield { service, address, problem: why };
  }
}

function followsOf(
  discovery: DiscoveryStatus,
): NonNullable<StatusAnswer["follows"]> {
  const { state, server, problem, recalledFrom } = discovery;
  return {
    state: state === "open"
      ? "following"
      : state === "connecting"
      ? "connecting"
      : "waiting",
    ...server === undefined ? {} : { server },
    ...problem === undefined ? {} : { problem: clipped(problem) },
    ...recalledFrom === undefined ? {} : { recalledFrom },
  };
}

/** What an operator should look at; single ports are in `services`. */
export function proxyWarnings(
  { openingProblem: problem, notes }: {
    readonly openingProblem: string | undefined;
    readonly notes: readonly string[];
  },
  identityProblem: string | undefined,
): readonly Warning[] {
  return [
    ...identityProblem === undefined ? [] : [{
      code: code("TUN206"),
      severity: "error" as const,
      message: `Servers cannot be asked: ${clipped(identityProblem)}`,
    }],
    ...problem === undefined ? [] : [{
      code: code("TUN701"),
      severity: "error" as const,
      message: `Not everything is served: ${clipped(problem)}`,
    }],
    ...notes.slice(0, PROBLEMS_MAX).map((note) => ({
      severity: "warning" as const,
      message: clipped(note),
    })),
  ];
}

/**
 * What a server lists beside nodes and conduits: services, clients of discovery,
 * the audit log.
 *
 * @module
 */

import { quietly } from "../../platform/errors/error_code.ts";
import type {
  AuditAnswer,
  DiscoveryAnswer,
  ListedService,
  ServicesAnswer,
} from "../../proto/admin/list_answers.ts";
import type { Endpoint, Service } from "../../services/catalog/model/model.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import {
  clientSummaries,
  type ClientSummary,
} from "../../services/discovery/status/client_answers.ts";
import type { ServerDiscovery } from "../../server/discovery/server_discovery.ts";

/** Endpoints of one service that are listed. */
const ENDPOINTS_MAX = 1_000;

/** Made while it is sent: there may be thousands. */
export function servicesAnswer(
  { catalog }: ServerDiscovery,
): Omit<ServicesAnswer, "services"> & {
  readonly services: Iterable<ListedService>;
} {
  const { services, endpoints } = catalog.snapshot;
  const listed = function* () {
    for (const key of [...services.keys()].sort()) {
      const service = services.get(key)!;
      const source = catalog.originOf(key)?.service ?? "";
      yield serviceInfo(key, service, source, endpoints.get(key) ?? []);
    }
  };
  return { services: listed(), total: services.size };
}

function serviceInfo(
  key: string,
  { ports }: Service,
  source: string,
  endpoints: readonly Endpoint[],
): ListedService {
  const isReady = ({ state }: Endpoint) => state === "ready";
  const problem = endpoints.length === 0
    ? "it has no endpoints: clients that connect to it are refused"
    : endpoints.some(isReady)
    ? undefined
    : "none of its endpoints is ready";
  return {
    name: key,
    source,
    ports: ports.map(({ name, port, protocol }) =>
      `${name === "" ? "" : `${name} `}${port}/${protocol}`
    ),
    endpoints: endpoints.slice(0, ENDPOINTS_MAX).map((endpoint) => {
      const node = nodeOf(endpoint);
      const [first] = endpoint.ports;
      const { address } = endpoint;
      return {
        address: first === undefined ? address : hostPort(address, first.port),
        node,
        isReady: isReady(endpoint),
      };
    }),
    problem,
  };
}

function nodeOf({ node, via }: Endpoint): string | undefined {
  if (node !== undefined && node !== "") return node;
  return via.kind === "agent" ? via.agent?.value : undefined;
}

/** How far each client of discovery is. */
export function discoveryAnswer(
  { streams }: ServerDiscovery,
  nowMs: number,
): DiscoveryAnswer {
  return {
    clients: clientSummaries(streams, nowMs).map((client) => {
      const refused = client.kinds.find(({ state }) => state === "refused");
      const problem = refused?.nacked?.message;
      return {
        name: client.client,
        form: client.form,
        mode: client.mode,
        since: new Date(Date.now() - client.connectedMs).toISOString(),
        state: clientState(client),
        problem,
        kinds: client.kinds.map(({ kind, names, state }) => ({
          kind,
          resources: names,
          state,
        })),
      };
    }),
  };
}

function clientState(
  { kinds }: ClientSummary,
): DiscoveryAnswer["clients"][number]["state"] {
  if (kinds.some(({ state }) => state === "refused")) return "refused";
  return kinds.every(({ state }) => state === "synced" || state === "unsent")
    ? "in sync"
    : "waiting";
}

/** Lines of an audit log, which hold no secrets. */
export function auditAnswer(lines: readonly string[]): AuditAnswer {
  return {
    entries: lines.flatMap((line) => quietly(() => [JSON.parse(line)]) ?? []),
  };
}

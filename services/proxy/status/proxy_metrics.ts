/**
 * What a proxy counts, for Prometheus: `tunnel_proxy_…`.
 *
 * The catalog names the labels, so their number is limited: ports and endpoints
 * beyond the limits are counted together.
 *
 * @module
 */

import type {
  ComputedFamily,
  MetricRegistry,
  Sample,
} from "../../../platform/metrics/metrics.ts";
import type { Backend } from "../balancer/backend.ts";
import type { Proxy, ServedPort } from "../ports/proxy.ts";

/** Ports with labels of their own. */
export const PORT_SERIES_MAX = 1_000;

/** Endpoints with labels of their own, over all ports. */
export const ENDPOINT_SERIES_MAX = 2_000;

/** The label of all the others. */
export const OTHERS = "(others)";

const PREFIX = "tunnel_proxy_";

const PORT_LABELS = ["service", "port", "protocol"] as const;
const ENDPOINT_LABELS = ["service", "port", "endpoint"] as const;

/** Adds everything; values are asked for at each scrape. */
export function registerProxyMetrics(
  registry: MetricRegistry,
  proxy: Proxy,
): void {
  registerWhole(registry, proxy);
  registry.computedFamilies(
    PREFIX,
    PORT_LABELS,
    PORT_FAMILIES,
    (value) => summed(portSamples(proxy, value)),
  );
  registry.computedFamilies(
    `${PREFIX}endpoint_`,
    ENDPOINT_LABELS,
    ENDPOINT_FAMILIES,
    (value) => summed(endpointSamples(proxy, value)),
  );
}

function registerWhole(registry: MetricRegistry, proxy: Proxy): void {
  const gauge = (name: string, help: string, value: () => number) =>
    registry.computed("gauge", `${PREFIX}${name}`, help, value);
  const count = (counts: (served: ServedPort) => boolean) => () =>
    [...proxy.served.values()].filter(counts).length;
  gauge("ports", "Ports of services.", () => proxy.served.size);
  gauge(
    "unserved_ports",
    "Ports of services that are listened for nowhere.",
    count(({ listener }) => listener.address === undefined),
  );
  gauge(
    "empty_ports",
    "Ports of services without any endpoint that may be used.",
    count(({ port }) => port.balancer.usableCount === 0),
  );
  gauge(
    "draining_connections",
    "Connections of services that are gone.",
    () => proxy.drainingLoad,
  );
}

const PORT_FAMILIES: readonly ComputedFamily<ServedPort>[] = [
  [
    "gauge",
    "open_connections",
    "Connections, and UDP sessions.",
    ({ proxy }) => proxy.load,
  ],
  [
    "counter",
    "connections_total",
    "Clients that came.",
    ({ port }) => port.counts.accepted,
  ],
  [
    "counter",
    "refused_connections_total",
    "Clients for which no endpoint could be reached.",
    ({ port }) => port.counts.refused,
  ],
  [
    "counter",
    "retries_total",
    "Dials of a further endpoint after one that failed.",
    ({ port }) => port.counts.retries,
  ],
  [
    "counter",
    "ejections_total",
    "Times that an endpoint was left out after failures.",
    ({ port }) => port.counts.ejections,
  ],
  [
    "counter",
    "bytes_from_clients_total",
    "Bytes that went to endpoints.",
    ({ port }) => port.counts.bytesFromClients,
  ],
  [
    "counter",
    "bytes_to_clients_total",
    "Bytes that came from endpoints.",
    ({ port }) => port.counts.bytesToClients,
  ],
  [
    "counter",
    "ended_half_closed_total",
    "TCP connections that were silent too long after one side had ended.",
    ({ port }) => port.counts.endedHalfClosed,
  ],
  [
    "counter",
    "ended_idle_total",
    "TCP connections that were silent too long.",
    ({ port }) => port.counts.endedIdle,
  ],
  [
    "counter",
    "ended_by_endpoint_total",
    "TCP connections that were reset because their endpoint went or was down.",
    ({ port }) => port.counts.endedByEndpoint,
  ],
  [
    "counter",
    "sessions_moved_total",
    "UDP sessions that ended because their endpoint went or was ill.",
    ({ port }) => port.counts.moved,
  ],
  [
    "counter",
    "sessions_refused_total",
    "UDP sessions that ended because their endpoint refused datagrams.",
    ({ port }) => port.counts.sessionsRefused,
  ],
  [
    "counter",
    "resent_datagrams_total",
    "Datagrams that one endpoint refused and another one was sent.",
    ({ port }) => port.counts.datagramsResent,
  ],
  [
    "counter",
    "sessions_crowded_out_total",
    "UDP sessions that made room for others, at the limit.",
    ({ port }) => port.counts.crowdedOut,
  ],
  [
    "counter",
    "dropped_datagrams_total",
    "Datagrams of clients for which no endpoint could be reached.",
    ({ port }) => port.counts.datagramsDropped,
  ],
];

const ENDPOINT_FAMILIES: readonly ComputedFamily<SeenBackend>[] = [
  [
    "gauge",
    "open_connections",
    "Connections, and UDP sessions.",
    ({ backend }) => backend.connections,
  ],
  [
    "counter",
    "connections_total",
    "Dials that succeeded.",
    ({ backend }) => backend.connectionsTotal,
  ],
  [
    "counter",
    "dial_failures_total",
    "Dials that failed.",
    ({ backend }) => backend.failuresTotal,
  ],
  [
    "gauge",
    "is_out",
    "1: ejected after failures, or ill by its health check.",
    ({ backend, ejectedForMs }) =>
      ejectedForMs() > 0 || backend.health === "ill" ? 1 : 0,
  ],
  [
    "counter",
    "bytes_sent_total",
    "Bytes to it.",
    ({ backend }) => backend.bytesSent,
  ],
  [
    "counter",
    "bytes_received_total",
    "Bytes from it.",
    ({ backend }) => backend.bytesReceived,
  ],
];

function* portSamples(
  proxy: Proxy,
  value: (served: ServedPort) => number,
): Iterable<Sample> {
  let seen = 0;
  for (const served of proxy.served.values()) {
    const { port, protocol } = served;
    const labels = ++seen <= PORT_SERIES_MAX
      ? [port.service, port.name, protocol]
      : OTHER_PORTS[protocol];
    yield [labels, value(served)];
  }
}

/** Of ports beyond the limit. */
const OTHER_PORTS = {
  tcp: [OTHERS, OTHERS, "tcp"],
  udp: [OTHERS, OTHERS, "udp"],
} as const;

interface SeenBackend {
  readonly backend: Backend;
  /** Asked for by the one family that wants it. */
  ejectedForMs(): number;
}

function* endpointSamples(
  proxy: Proxy,
  value: (seen: SeenBackend) => number,
): Iterable<Sample> {
  let seen = 0;
  for (const { port } of proxy.served.values()) {
    const { balancer } = port;
    for (const backend of balancer.backends) {
      const labels = ++seen <= ENDPOINT_SERIES_MAX
        ? [port.service, port.name, backend.key]
        : OTHER_ENDPOINTS;
      const ejectedForMs = () => balancer.ejectedForMs(backend);
      yield [labels, value({ backend, ejectedForMs })];
    }
  }
}

const OTHER_ENDPOINTS = [OTHERS, OTHERS, OTHERS] as const;

/** Samples that are looked at between two pauses: a fraction of a millisecond. */
const PAUSE_SAMPLES = 64;

/** One sample for each set of labels, with pauses while they are summed up. */
function* summed(samples: Iterable<Sample>): Iterable<Sample | undefined> {
  const sums = new Map<string, Sample>();
  /** Whose labels are one list: most of a big catalog's. */
  const others = new Map<readonly string[], number>();
  let looked = 0;
  for (const [labels, value] of samples) {
    if (++looked % PAUSE_SAMPLES === 0) yield undefined;
    if (labels[0] === OTHERS) {
      others.set(labels, (others.get(labels) ?? 0) + value);
      continue;
    }
    const key = labels.join("\0");
    sums.set(key, [labels, (sums.get(key)?.[1] ?? 0) + value]);
  }
  yield* sums.values();
  yield* others;
}

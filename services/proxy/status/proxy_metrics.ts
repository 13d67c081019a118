/**
 * A proxy's metrics for Prometheus: `tunnel_proxy_…`.
 *
 * The catalog names the labels, so their number is limited: ports and endpoints
 * beyond the limits are counted together, and ports that were never used have
 * no histograms, which are many lines.
 *
 * @module
 */

import {
  type ComputedFamily,
  Histogram,
  type HistogramSample,
  type MetricRegistry,
  type Sample,
} from "../../../platform/metrics/metrics.ts";
import type { Backend } from "../balancer/backend.ts";
import type { Proxy, ServedPort } from "../ports/proxy.ts";
import {
  PORT_COUNTS,
  type PortCounts,
  PortTimes,
} from "../listeners/proxied_port.ts";

/** Ports with labels of their own. */
export const PORT_SERIES_MAX = 1_000;

/** Endpoints with labels of their own, over all ports. */
export const ENDPOINT_SERIES_MAX = 2_000;

/** The label of all other ports. */
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
  registerProxyHistograms(registry, proxy);
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

const COUNTED = Object.entries(PORT_COUNTS) as (readonly [
  keyof PortCounts,
  readonly [name: string, help: string],
])[];

const PORT_FAMILIES: readonly ComputedFamily<ServedPort>[] = [
  [
    "gauge",
    "open_connections",
    "Connections, and UDP sessions.",
    ({ proxy }) => proxy.load,
  ],
  ...COUNTED.map(([count, [name, help]]): ComputedFamily<ServedPort> => [
    "counter",
    name,
    help,
    ({ port }) => port.counts[count],
  ]),
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

/** The sum of the ports beyond the limit. */
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

const LABELS = ["namespace", "service", "port"] as const;
const OTHER_LABELS = [OTHERS, OTHERS, OTHERS] as const;

/** Ports that are looked at between two pauses; each is fifteen lines or none. */
const PAUSE_PORTS = 16;

/** Adds both families; they are made while they are asked for. */
export function registerProxyHistograms(
  registry: MetricRegistry,
  proxy: Pick<Proxy, "served">,
): void {
  registry.computedHistograms(
    "tunnel_proxy_connect_seconds",
    "Time until a TCP client was connected with an endpoint.",
    LABELS,
    () => samples(proxy, ({ connect }) => connect),
  );
  registry.computedHistograms(
    "tunnel_proxy_connection_seconds",
    "Length of TCP connections that have ended.",
    LABELS,
    () => samples(proxy, ({ length }) => length),
  );
}

function* samples(
  proxy: Pick<Proxy, "served">,
  pick: (times: PortTimes) => Histogram,
): Iterable<HistogramSample | undefined> {
  const others = pick(new PortTimes());
  let seen = 0;
  for (const { port } of proxy.served.values()) {
    if (++seen % PAUSE_PORTS === 0) yield undefined;
    if (port.timesSeen === undefined) continue;
    const histogram = pick(port.timesSeen);
    if (histogram.count === 0) continue;
    if (seen > PORT_SERIES_MAX) others.add(histogram);
    else yield [[port.namespace, port.service, port.name], histogram];
  }
  if (others.count > 0) yield [OTHER_LABELS, others];
}

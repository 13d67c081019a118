/**
 * Connect times and lengths of connections by service, for Prometheus.
 *
 * Ports beyond the limit that counters have are counted together, as there, and
 * ports that nobody has used are not shown at all: a histogram is many lines.
 *
 * @module
 */

import {
  Histogram,
  type HistogramSample,
  type MetricRegistry,
} from "../../../platform/metrics/metrics.ts";
import { PortTimes } from "../listeners/proxied_port.ts";
import type { Proxy } from "../ports/proxy.ts";
import { OTHERS, PORT_SERIES_MAX } from "./proxy_metrics.ts";

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

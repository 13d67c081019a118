/**
 * A proxy's DNS, kept up: a port that somebody else has is tried until it is
 * free, as with those of services.
 *
 * @module
 */

import type { CountingTools } from "../../../platform/program/tools.ts";
import { DnsResponder } from "./dns.ts";
import { listenDns } from "./dns_listener.ts";
import { DnsZone } from "./dns_zone.ts";
import { OwnAddresses } from "../listeners/own_addresses.ts";
import type { Proxy } from "../ports/proxy.ts";
import { ServiceListener } from "../listeners/service_listener.ts";

/** @returns What is to be told where to listen; see {@linkcode ServiceListener}. */
export function dnsService(
  proxy: Proxy,
  tools: CountingTools,
  changed: () => void,
): ServiceListener {
  const { log, timers, metrics } = tools;
  const responder = new DnsResponder(new DnsZone(proxy));
  metrics.computedLabelled(
    "counter",
    "tunnel_proxy_dns_answers_total",
    "Answers to DNS questions.",
    ["code"],
    () => [...responder.counts].map(([code, count]) => [[code], count]),
  );
  return new ServiceListener({
    name: "DNS",
    protocol: "udp",
    own: new OwnAddresses(),
    log,
    timers,
    random: Math.random,
    changed,
    open: (at) => listenDns(at, responder, tools),
  });
}

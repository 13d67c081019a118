/**
 * A proxy's DNS, kept up: a port that somebody else has is tried until it is
 * free, as with those of services.
 *
 * @module
 */

import type { ListenAddress } from "../../../net/listen/listeners.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { DnsResponder } from "./dns.ts";
import { listenDns } from "./dns_listener.ts";
import { DnsZone } from "./dns_zone.ts";
import { OwnAddresses } from "../listeners/own_addresses.ts";
import type { Proxy } from "../ports/proxy.ts";
import { ServiceListener } from "../listeners/service_listener.ts";

export class DnsService {
  readonly #at: ListenAddress;
  readonly #listener: ServiceListener;

  constructor(
    at: ListenAddress,
    proxy: Proxy,
    { log, metrics }: { readonly log: Log; readonly metrics: MetricRegistry },
  ) {
    const responder = new DnsResponder(new DnsZone(proxy));
    this.#at = at;
    this.#listener = new ServiceListener({
      name: "DNS",
      protocol: "udp",
      own: new OwnAddresses(),
      log,
      timers: systemTimers,
      random: Math.random,
      open: (at) => listenDns(at, responder, { log, timers: systemTimers }),
    });
    metrics.computedLabelled(
      "counter",
      "tunnel_proxy_dns_answers_total",
      "Answers to DNS questions.",
      ["code"],
      () => [...responder.counts].map(([code, count]) => [[code], count]),
    );
  }

  start(): void {
    this.#listener.want(this.#at);
  }

  /** Another process answers; see `ServiceListener.retire`. */
  retire(): void {
    this.#listener.retire();
  }

  /** Why it is not answered, if that is known. */
  get problem(): string | undefined {
    return this.#listener.problem;
  }

  /** Whether it is still to be seen if it can be. */
  get isOpening(): boolean {
    return this.#listener.isOpening;
  }

  stop(): void {
    this.#listener.close();
  }
}

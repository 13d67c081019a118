/**
 * A service proxy put together: sources, catalog, the route into the tunnel, the
 * proxy, and what it counts. A node's own process has one, and an agent may.
 *
 * @module
 */

import { proxyParts } from "./status/proxy_summary.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { Catalog } from "../catalog/catalog.ts";
import { registerCatalogMetrics } from "../catalog/catalog_metrics.ts";
import type { Source } from "../catalog/model/source.ts";
import type { TunnelRoute } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { jsonAnswer, type Routes } from "../../net/admin/http_endpoints.ts";
import type { HandoverFields } from "../../net/handover/packet_socket.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import { catalogDials } from "../../policy/audit_trail.ts";
import type { Program } from "../../net/program/program.ts";
import {
  type DiscoveryFollower,
  registerDiscoveryClientMetrics,
} from "./ads/ads_source.ts";
import { dnsService } from "./dns/dns_listener.ts";
import { Families } from "./balancer/families.ts";
import type { AddressFile } from "./addresses/reserved_numbers.ts";
import { openAddressFile } from "./addresses/local_address.ts";
import type { ProxySettings } from "./listeners/proxied_port.ts";
import type { ServiceListener } from "./listeners/service_listener.ts";
import { Proxy, type ProxyOptions } from "./ports/proxy.ts";
import { given } from "../../platform/documents/given.ts";
import { registerProxyMetrics } from "./status/proxy_metrics.ts";
import { PROXY_STATUS_PATH, proxyStatus } from "./status/proxy_status.ts";
import { MachineDialer } from "./endpoints/endpoint_dialer.ts";
import { FileSource } from "../catalog/sources/file.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { PROXY_DEFAULTS } from "./defaults.ts";

/** The parts of a service proxy. */
export interface ServiceProxyOptions
  extends
    ProxySettings,
    Pick<ProxyOptions, "addresses" | "balance" | "zone" | "node"> {
  /** The first that has a service owns it; names are unique. */
  readonly sources: readonly Source[];
  /** The one of them that follows a discovery server, if one does. */
  readonly discovery?: DiscoveryFollower;
  /** Keeps addresses over a restart; absent: nothing does. */
  readonly addressFile?: AddressFile;
  /** The route to endpoints behind agents; absent: they cannot be reached. */
  readonly route?: TunnelRoute;
  /** See `MachineDialerOptions`. */
  readonly earlyData?: boolean;
  /** The address that answers over DNS; absent: there is none. */
  readonly dns?: ListenAddress;
}

export class ServiceProxy {
  readonly #catalog: Catalog;
  readonly #proxy: Proxy;
  readonly #closeDialer: () => void;
  readonly #dns:
    | { readonly at: ListenAddress; readonly listener: ServiceListener }
    | undefined;
  #catalogStopped: Promise<void> | undefined;

  /**
   * @param changed Called when {@linkcode load} or {@linkcode problem} may have
   *   changed.
   */
  constructor(
    private readonly options: ServiceProxyOptions,
    program: Program,
    private readonly changed: () => void = () => {},
  ) {
    const { log, timers, metrics, events, trail } = program;
    const { sources, route, discovery, addressFile } = options;
    const { earlyData, ...settings } = options;
    const tunnel = route && openDialer(route);
    const random = Math.random;
    this.#closeDialer = () => tunnel?.close();
    this.#catalog = new Catalog({ sources, log, timers, random });
    this.#proxy = new Proxy({
      ...settings,
      ...given({ numbers: addressFile?.numbers }),
      catalog: this.#catalog,
      context: {
        ...settings,
        ...{ log, timers, changed, random },
        reports: program.reports(
          ({ message }, { service }) =>
            events.note("dial-failed", `${service}: ${message}`),
          ...trail === undefined ? [] : [catalogDials(trail)],
        ),
        families: new Families(timers),
        dialer: new MachineDialer(given({ tunnel, earlyData })),
      },
    });
    registerCatalogMetrics(metrics, this.#catalog);
    registerProxyMetrics(metrics, this.#proxy);
    if (discovery !== undefined) {
      registerDiscoveryClientMetrics(metrics, discovery);
    }
    this.#dns = options.dns && {
      at: options.dns,
      listener: dnsService(this.#proxy, program, changed),
    };
  }

  /**
   * Why it does not serve everything yet. Ports that cannot be opened do not
   * count: that may last, and all others are served ({@linkcode notes}).
   */
  get problem(): string | undefined {
    const waiting = this.#catalog.status.filter(({ isSynced }) => !isSynced);
    if (waiting.length === 0) return this.openingProblem;
    const names = waiting.map(({ name, problem }) =>
      problem === undefined ? name : `${name} (${problem})`
    );
    return `nothing is known yet of ${names.join(", ")}`;
  }

  /** What an operator should look at although the proxy is ready. */
  get notes(): readonly string[] {
    const dns = this.#dns?.listener.problem;
    return [
      ...this.#proxy.problems,
      ...dns === undefined ? [] : [`DNS: ${dns}`],
    ];
  }

  /** TCP connections, those of removed services included. */
  get connections(): number {
    let connections = this.#proxy.drainingLoad;
    for (const { protocol, proxy } of this.#proxy.served.values()) {
      if (protocol === "tcp") connections += proxy.load;
    }
    return connections;
  }

  /** Connections and sessions, those of removed services included. */
  get load(): number {
    let load = this.#proxy.drainingLoad;
    for (const { proxy } of this.#proxy.served.values()) load += proxy.load;
    return load;
  }

  /** `/v1/services`: all of them, or `?service=namespace/name`. */
  services({ searchParams }: URL): ReturnType<typeof proxyStatus> {
    const service = searchParams.get("service") ?? undefined;
    return proxyStatus(this.#proxy, this.options.discovery?.status, service);
  }

  /** The same for callers without a token. */
  get openRoutes(): Routes {
    return { [PROXY_STATUS_PATH]: (url) => jsonAnswer(this.services(url)) };
  }

  /** Its part of `/v1/status`. */
  get parts(): ReturnType<typeof proxyParts> {
    return proxyParts(this.#proxy, this.options.discovery?.status);
  }

  start(): void {
    this.#proxy.start();
    this.#catalog.start();
    unawaited("catalog", this.#catalog.whenSynced().then(this.changed));
    this.#dns?.listener.want(this.#dns.at);
  }

  /** Reads all sources again. */
  reload(): void {
    for (const source of this.options.sources) {
      unawaited("catalog", source.reconcile());
    }
  }

  /** See `Replaceable.memory`. */
  get memory(): Iterable<HandoverFields> {
    return this.#proxy.memory();
  }

  recall(part: HandoverFields): void {
    this.#proxy.recall(part);
  }

  /** The process that had its ports is gone: UDP ports are free for the next. */
  successorEnded(): void {
    this.#dns?.listener.close();
    this.#proxy.closeDatagrams();
  }

  /** Another process has its ports: what runs goes on, and nothing changes. */
  retire(): void {
    this.#proxy.retire();
    this.#dns?.listener.retire();
    this.#catalogStopped ??= this.#catalog.stop();
  }

  /** Ports that are not open yet, although all is known. */
  get openingProblem(): string | undefined {
    const opening = [...this.#proxy.opening];
    if (this.#dns?.listener.isOpening) opening.push("DNS");
    if (opening.length === 0) return undefined;
    const [first, ...others] = opening;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `not open yet: ${first}${more}`;
  }

  /**
   * Accepts no new client. A second call may shorten the time.
   *
   * @param drainMs How long running connections may go on.
   */
  async stop(drainMs: number): Promise<void> {
    this.#catalogStopped ??= this.#catalog.stop();
    this.#dns?.listener.close();
    await Promise.all([this.#proxy.stop(drainMs), this.#catalogStopped]);
    await this.options.addressFile?.close();
    this.#closeDialer();
  }
}

/**
 * @param configFile Of services; read now, and again whenever it changes.
 * @throws {SourceUnusableError}
 */
export async function agentServices(configFile: string): Promise<Source> {
  const source = new FileSource({ path: configFile, timers: systemTimers });
  await source.prepare();
  return source;
}

/**
 * @param source Its start is the proxy's.
 * @param addressPath Where it is kept where services are; absent: nowhere.
 */
export function openAgentProxy(
  source: Source,
  addressPath: string | undefined,
  program: Program,
  changed: () => void,
): ServiceProxy {
  const addressFile = addressPath === undefined
    ? undefined
    : openAddressFile(addressPath, PROXY_DEFAULTS.addresses, program);
  return new ServiceProxy(
    {
      ...PROXY_DEFAULTS,
      ...(addressFile === undefined ? {} : { addressFile }),
      sources: [source],
    },
    program,
    changed,
  );
}

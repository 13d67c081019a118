/**
 * What a proxy says of its services: to the admin API, to `tunnel services` and
 * `tunnel endpoints`, to its own status. Plain data that survives JSON.
 *
 * @module
 */

import type {
  ListedEndpoint,
  ListedService,
  ServicesAnswer,
} from "../../../proto/admin/list_answers.ts";
import type { SourceStatus } from "../../catalog/source_input.ts";
import type {
  Balance,
  Endpoint,
  Protocol,
  Via,
} from "../../catalog/model/model.ts";
import { given } from "../../../platform/documents/given.ts";
import type { Backend } from "../balancer/backend.ts";
import type { PortCounts } from "../listeners/proxied_port.ts";
import type { Balancer } from "../balancer/balancer.ts";
import type { DiscoveryStatus } from "../ads/ads_source.ts";
import type { Proxy, ServedPort } from "../ports/proxy.ts";

/**
 * The same answer as `/v1/services`, without a token: all users of a machine may
 * know where its services are.
 */
export const PROXY_STATUS_PATH = "/debug/proxy";

/** Limit on repeated words of other programs. */
const TEXT_LENGTH_MAX = 400;

export interface ProxyStatus extends ServicesAnswer {
  /** Counts changes of the catalog. */
  readonly version: number;
  readonly isSynced: boolean;
  readonly sources: readonly SourceStatus[];
  /** The discovery server that it follows; absent: it follows none. */
  readonly discovery?: DiscoveryStatus;
  /** By service, then as its source has them. */
  readonly services: readonly PortStatus[];
  /** Connections of removed services. */
  readonly draining: number;
}

/**
 * One port of a service. Its `problem` is why it is not served, or not where it
 * should be.
 */
export interface PortStatus extends ListedService, Readonly<PortCounts> {
  /** `namespace/name`. */
  readonly service: string;
  /** Empty for the only one. */
  readonly port: string;
  readonly protocol: Protocol;
  /** The service's own. */
  readonly number: number;
  /** `host:port`; absent: nowhere, see `problem`. */
  readonly listening?: string;
  /** The service that has the address of its name; absent: it has it itself. */
  readonly displacedBy?: string;
  /** Whose endpoints it has; `source` describes it, or is empty. */
  readonly endpointsSource?: string;
  readonly balance: Balance;
  readonly affinity: "none" | "client-ip";
  /** Absent: none is remembered, the address alone decides. */
  readonly affinityClients?: number;
  readonly open: number;
  readonly lastError?: string;
  readonly endpoints: readonly EndpointStatus[];
}

/** Whether an endpoint gets new connections, and why not. */
export type EndpointUse =
  | "in use"
  /**
   * Others are better: it goes away while they are ready, or is of a family of
   * addresses that this machine has not.
   */
  | "spared"
  /** The catalog says so. */
  | "unready"
  | "terminating"
  /** Dials failed. */
  | "ejected"
  /** The health check failed. */
  | "ill";

/** One endpoint of a port. */
export interface EndpointStatus extends ListedEndpoint {
  readonly use: EndpointUse;
  /** One sentence for every state but `in use`. */
  readonly why?: string;
  readonly state: Endpoint["state"];
  /** `direct`, `agent`, `agent host=n1`. */
  readonly via: string;
  readonly zone?: string;
  readonly weight: number;
  readonly open: number;
  readonly total: number;
  readonly failures: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly lastError?: string;
}

/**
 * Services are read while they are sent: there may be thousands.
 *
 * @param service Only this one: `namespace/name`.
 */
export function proxyStatus(
  proxy: Proxy,
  discovery?: DiscoveryStatus,
  service?: string,
): Omit<ProxyStatus, "services"> & {
  readonly services: Iterable<PortStatus>;
} {
  const { catalog, served, drainingLoad } = proxy;
  return {
    version: catalog.snapshot.version,
    isSynced: catalog.isSynced,
    sources: catalog.status,
    ...given({ discovery }),
    services: portStatuses(proxy, service),
    total: served.size,
    draining: drainingLoad,
  };
}

/** By service, then as its source has them. */
export function* portStatuses(
  proxy: Proxy,
  service?: string,
): Iterable<PortStatus> {
  const served = [...proxy.served.values()]
    .filter(({ port }) => service === undefined || port.service === service);
  for (const one of served.sort(byService)) yield portStatus(one, proxy);
}

function portStatus(served: ServedPort, of: Proxy): PortStatus {
  const { port, protocol, listener, proxy } = served;
  const { balancer, counts, servicePort: { port: number } } = port;
  const origin = of.catalog.originOf(port.service);
  const listening = listener.address;
  const where = listening === undefined ? "" : ` on ${listening}`;
  return {
    name: port.key,
    service: port.service,
    port: port.name,
    ports: [`${number}/${protocol}${where}`],
    protocol,
    number,
    source: origin?.service ?? "",
    ...given({
      listening,
      displacedBy: of.displacedBy(port),
      problem: clipped(served.problem ?? listener.problem),
      endpointsSource: origin?.endpoints,
    }),
    balance: balancer.policy.balance,
    affinity: balancer.policy.affinity.kind,
    ...given({ affinityClients: balancer.affinityClients }),
    open: proxy.load,
    ...counts,
    ...given({ lastError: clipped(port.lastError) }),
    endpoints: [...balancer.backends]
      .map((backend) => endpointStatus(backend, balancer)),
  };
}

function endpointStatus(
  backend: Backend,
  balancer: Pick<Balancer, "ejectedForMs" | "isBeyond">,
): EndpointStatus {
  const { endpoint } = backend.target;
  const { state, node, zone, weight, via } = endpoint;
  const { use, why } = useOf(backend, balancer);
  return {
    address: backend.key,
    isReady: use === "in use",
    use,
    state,
    via: viaText(via),
    weight,
    open: backend.connections,
    total: backend.connectionsTotal,
    failures: backend.failuresTotal,
    bytesSent: backend.bytesSent,
    bytesReceived: backend.bytesReceived,
    ...given({
      ...{ node, zone },
      why: clipped(why),
      lastError: clipped(backend.lastError),
    }),
  };
}

function useOf(
  backend: Backend,
  balancer: Pick<Balancer, "ejectedForMs" | "isBeyond">,
): Pick<EndpointStatus, "use" | "why"> {
  const { isUsable, health, failures, lastError } = backend;
  const { state } = backend.target.endpoint;
  if (!isUsable) {
    if (state === "serving") {
      return { use: "spared", why: "it goes away, and others are ready" };
    }
    return state === "terminating"
      ? { use: "terminating", why: "it goes away and answers no more" }
      : { use: "unready", why: "its source says that it is not ready" };
  }
  if (balancer.isBeyond(backend)) {
    return {
      use: "spared",
      why: `this machine has no IPv${backend.family} address, and others do ` +
        "without one",
    };
  }
  const because = lastError === undefined ? "" : `: ${lastError}`;
  if (health === "ill") {
    return { use: "ill", why: `its health check failed${because}` };
  }
  const ejectedForMs = balancer.ejectedForMs(backend);
  if (ejectedForMs > 0) {
    const seconds = Math.ceil(ejectedForMs / 1_000);
    return {
      use: "ejected",
      why: `${failures} dials in a row failed; ${seconds} s more${because}`,
    };
  }
  return { use: "in use" };
}

/** The route to an endpoint, in words. */
function viaText(via: Via): string {
  if (via.kind === "direct") return "direct";
  const { agent } = via;
  return agent === undefined ? "agent" : `agent ${agent.key}=${agent.value}`;
}

/** Words of other programs, as far as they are repeated. */
export function clipped<Text extends string | undefined>(text: Text): Text {
  return text?.slice(0, TEXT_LENGTH_MAX) as Text;
}

function byService(one: ServedPort, other: ServedPort): number {
  const [a, b] = [one.port, other.port];
  if (a.service !== b.service) return a.service < b.service ? -1 : 1;
  return a.position - b.position;
}

/**
 * The service proxy: a local port for each port of each service. A client that
 * connects there is connected to an endpoint.
 *
 * Follows the catalog. What a change means: removed ports are closed, and
 * connections there may end by themselves; new ports are opened; an address
 * that moves from one port to another takes its socket along; all others are
 * left alone. `tunnel proxy` is this with a process around it, and an agent may
 * contain one, too.
 *
 * Reading order: `start`, `#onSnapshot`, `#serve`, `#place`.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { type Diff, touchedIn } from "../../catalog/diff.ts";
import {
  type Balance,
  keyOf,
  type Protocol,
  type Service,
} from "../../catalog/model/model.ts";
import { type Snapshot, targetsOf } from "../../catalog/snapshot.ts";
import type { HandoverFields } from "../../../net/handover/packet_socket.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import type { Backend } from "../balancer/backend.ts";
import { HealthChecks } from "../health/health.ts";
import type { ReservedNumbers } from "../addresses/reserved_numbers.ts";
import {
  LocalAddressBook,
  type LocalAddresses,
} from "../addresses/local_address.ts";
import { addressKey, OwnAddresses } from "../listeners/own_addresses.ts";
import {
  type CreatePortProxy,
  inOrderOfPlacing,
  type Leaving,
  portKey,
  type PortProxy,
  ProxiedPort,
  type ProxyContext,
} from "../listeners/proxied_port.ts";
import { ServiceListener } from "../listeners/service_listener.ts";
import { TcpPortProxy } from "../sessions/tcp_proxy.ts";
import { UdpSessions } from "../sessions/udp_sessions.ts";

/** The parts of a proxy. */
export interface ProxyOptions {
  readonly catalog: Catalog;
  readonly context: ProxyContext;
  readonly addresses: LocalAddresses;
  /** The earlier addresses of services; absent: none are known. */
  readonly numbers?: ReservedNumbers | undefined;
  /** Used when a service states no address. */
  readonly balance: Balance;
  /** The zone of this machine; absent: no endpoint is near. */
  readonly zone?: string;
  /** The name of this machine in the endpoints' node field; absent: unknown. */
  readonly node?: string;
  /** Serves ports; those of this folder unless a test has others. */
  readonly portProxies?: PortProxies;
}

/** One port, and everything that serves it. */
export interface ServedPort {
  readonly port: ProxiedPort;
  readonly protocol: Protocol;
  readonly proxy: PortProxy;
  readonly listener: ServiceListener;
  readonly health: HealthChecks;
  /** Why there is no address to listen on. */
  problem: string | undefined;
}

export class Proxy {
  readonly #book: LocalAddressBook;
  readonly #served = new Map<string, ServedPort>();
  /** Ports that are gone, while their connections go on. */
  readonly #draining = new Set<Drain>();
  readonly #own = new OwnAddresses();
  readonly #portProxies: PortProxies;
  #unfollow = () => {};

  constructor(private readonly options: ProxyOptions) {
    this.#portProxies = options.portProxies ?? PORT_PROXIES;
    this.#book = new LocalAddressBook(
      options.addresses,
      options.numbers,
      ({ owner, holder }) =>
        options.context.log.info(
          `${owner} and ${holder} are called alike as far as addresses go: ` +
            `${holder} has what both names make, ${owner} keeps another`,
        ),
    );
  }

  /** By service and name of the port. */
  get served(): ReadonlyMap<string, ServedPort> {
    return this.#served;
  }

  /** See `LocalAddressBook`. */
  displacedBy(port: ProxiedPort): string | undefined {
    return this.#book.displacedBy(port);
  }

  /** Connections of removed services. */
  get drainingLoad(): number {
    let load = 0;
    for (const { proxy } of this.#draining) load += proxy.load;
    return load;
  }

  get catalog(): Catalog {
    return this.options.catalog;
  }

  /** Serves the catalog, now and after each change. */
  start(): void {
    this.#unfollow = this.options.catalog.follow((snapshot, diff) =>
      this.#own.change(() => this.#onSnapshot(snapshot, diff))
    );
  }

  /** Another process has its ports: what runs goes on, and nothing changes. */
  retire(): void {
    this.#unfollow();
    for (const { listener } of this.#served.values()) listener.retire();
  }

  /** What the balancers know of their clients, for another process. */
  *memory(): Generator<HandoverFields> {
    for (const [port, served] of this.#served) {
      for (const part of served.port.balancer.memory()) yield { port, ...part };
    }
  }

  /** The same, from another process. */
  recall({ port, ...part }: HandoverFields): void {
    this.#served.get(port as string)?.port.balancer.recall(part);
  }

  /** Another process reads these ports now: their sessions end here. */
  closeDatagrams(): void {
    for (const served of [...this.#served.values()]) {
      if (served.protocol === "udp") this.#remove(served, 0);
    }
  }

  /** The wanted ports whose first attempt is still running. */
  get opening(): readonly string[] {
    return [...this.#served.values()]
      .filter(({ listener }) => listener.isOpening)
      .map(({ port }) => port.key);
  }

  /** Why ports are not open, for people. */
  get problems(): readonly string[] {
    return [...this.#served.values()].flatMap(({ port, problem, listener }) => {
      const why = problem ?? listener.problem;
      return why === undefined ? [] : [`${port.key}: ${why}`];
    });
  }

  /**
   * Accepts no new client.
   *
   * @param drainMs How long running connections may go on; 0 ends them now.
   * @returns Settles when nothing runs any more.
   */
  async stop(drainMs: number): Promise<void> {
    this.#unfollow();
    for (const served of [...this.#served.values()]) {
      if (drainMs === 0) this.#remove(served, 0);
      else this.#withdraw(served, drainMs);
    }
    if (drainMs === 0) {
      for (const { proxy } of this.#draining) {
        proxy.drain(0);
      }
    }
    await Promise.all([...this.#draining].map(({ over }) => over));
  }

  #onSnapshot(snapshot: Snapshot, diff: Diff): void {
    const touched = touchedIn(diff);
    // Removals first, so that their addresses are free for additions.
    for (const served of this.#touched(touched)) {
      if (servicePortOf(snapshot, served) === undefined) {
        this.#remove(served, this.#drainMs(served));
      }
    }
    const changed: ServedPort[] = [];
    for (const key of touched) {
      const service = snapshot.services.get(key);
      if (service === undefined) continue;
      for (const port of service.ports) {
        if (this.#portProxies[port.protocol] === undefined) continue;
        changed.push(this.#serve(snapshot, service, port.name));
      }
    }
    this.#place(changed);
  }

  /** Brings one port up to date, all but its address. */
  #serve(snapshot: Snapshot, service: Service, portName: string): ServedPort {
    const key = portKey(keyOf(service), portName);
    const port = service.ports.find(({ name }) => name === portName)!;
    let served = this.#served.get(key);
    if (served === undefined) {
      const { context } = this.options;
      served = this.#create(new ProxiedPort(service, port, context), port);
    } else {
      served.port.update(service, port);
      // Connections over the old protocol go on where they are.
      if (served.protocol !== port.protocol) served = this.#flip(served);
    }
    const { balancer } = served.port;
    balancer.configure(this.#balancerPolicy(service));
    const left = balancer.update(targetsOf(snapshot, keyOf(service), portName));
    const named = new Set(balancer.backends);
    const isDown = (backend: Backend) =>
      named.has(backend) && backend.target.endpoint.state === "unready";
    this.#leave(served, left.filter(isDown), "down");
    this.#leave(served, left.filter((one) => !isDown(one)), "removed");
    served.health.update();
    served.proxy.updated?.();
    return served;
  }

  #leave({ proxy }: ServedPort, left: readonly Backend[], why: Leaving): void {
    if (left.length > 0) proxy.left(left, why);
  }

  #create(port: ProxiedPort, { protocol }: { protocol: Protocol }): ServedPort {
    const { context } = this.options;
    const proxy = this.#portProxies[protocol]!(port, context);
    const served: ServedPort = {
      port,
      protocol,
      proxy,
      listener: new ServiceListener(
        {
          name: port.key,
          protocol,
          own: this.#own,
          changed: () => context.changed?.(),
          open: (at) => proxy.open(at),
        },
        context,
        context.random,
      ),
      health: new HealthChecks(port, context, (ill) => proxy.left(ill, "down")),
      problem: undefined,
    };
    this.#served.set(port.key, served);
    return served;
  }

  #flip(served: ServedPort): ServedPort {
    this.#close(served, this.#drainMs(served));
    return this.#create(served.port, served.port.servicePort);
  }

  /** Each port moves to its place; ports that move away make room first. */
  #place(changed: readonly ServedPort[]): void {
    const placed: (readonly [ServedPort, ListenAddress])[] = [];
    const byPort = new Map(changed.map((served) => [served.port, served]));
    for (const port of inOrderOfPlacing([...byPort.keys()])) {
      const served = byPort.get(port)!;
      const at = this.#book.place(port);
      served.problem = at === undefined
        ? "no address is left in the range of local addresses"
        : undefined;
      if (at === undefined) served.listener.close();
      else placed.push([served, at]);
    }
    const wanted = new Set(
      placed.map(([{ protocol }, at]) => addressKey(protocol, at)),
    );
    for (const [{ protocol, listener }, at] of placed) {
      const { bound } = listener;
      if (bound === undefined) continue;
      const key = addressKey(protocol, bound);
      if (key !== addressKey(protocol, at) && wanted.has(key)) listener.yield();
    }
    for (const [{ listener }, at] of placed) listener.want(at);
  }

  #remove(served: ServedPort, drainMs: number): void {
    const left = served.port.balancer.update([]);
    this.#leave(served, left, "service removed");
    this.#withdraw(served, drainMs);
  }

  /** Its endpoints stay, because queued clients must get one. */
  #withdraw(served: ServedPort, drainMs: number): void {
    this.#served.delete(served.port.key);
    this.#book.release(served.port);
    this.#close(served, drainMs);
  }

  #close(served: ServedPort, drainMs: number): void {
    served.listener.close();
    served.health.stop();
    const { proxy } = served;
    const drain = { proxy, over: proxy.drain(drainMs) };
    this.#draining.add(drain);
    unawaited("proxy", drain.over.then(() => this.#draining.delete(drain)));
  }

  #touched(services: ReadonlySet<string>): ServedPort[] {
    return [...this.#served.values()]
      .filter(({ port }) => services.has(port.service));
  }

  #drainMs({ port }: ServedPort): number {
    return port.policy.drainMs ?? this.options.context.drainMs;
  }

  #balancerPolicy({ affinity, policy }: Service) {
    const { zone, node, balance, context: { defaults } } = this.options;
    return {
      balance: policy.balance ?? balance,
      affinity,
      ejection: { ...defaults.ejection, ...policy.ejection },
      zone: policy.zoneAware ? zone : undefined,
      node: policy.nodeAware ? node : undefined,
    };
  }
}

/** Connections that go on although their port is gone. */
interface Drain {
  readonly proxy: PortProxy;
  readonly over: Promise<void>;
}

function servicePortOf(snapshot: Snapshot, { port }: ServedPort) {
  return snapshot.services.get(port.service)?.ports
    .find(({ name }) => name === port.name);
}

/** A protocol that is missing is not served. */
export type PortProxies = Readonly<Partial<Record<Protocol, CreatePortProxy>>>;

/** Makes the proxy for a protocol. */
const PORT_PROXIES: PortProxies = {
  tcp: (port, context) => new TcpPortProxy(port, context),
  udp: (port, context) => new UdpSessions(port, context),
};

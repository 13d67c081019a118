/**
 * A tunnel agent: links to its servers, dials their targets, ends in order.
 *
 * @module
 */

import type { CallRoad } from "../client/call_road.ts";
import { readToken } from "../host/kubernetes/token_file.ts";
import { dialTarget } from "../host/dial.ts";
import {
  adminHandler,
  healthHandler,
  metaHandler,
  type Routes,
} from "../host/http_endpoints.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHttp,
} from "../host/listeners.ts";
import type { Log } from "../host/log.ts";
import { MetricRegistry } from "../host/metrics.ts";
import type { ProxyEnvironment } from "../host/proxy_environment.ts";
import { registerProcessMetrics } from "../host/process_metrics.ts";
import { KeptFiles } from "../host/reload/kept_files.ts";
import { systemTimers } from "../host/system_timers.ts";
import type { Credentials } from "../host/tls/credentials.ts";
import { VERSION } from "../host/version.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../proto/link/control_messages.ts";
import { HTTP2_ALPN } from "../proto/link/hello.ts";
import { NO_IDENTIFIERS } from "../proto/link/identifiers.ts";
import { ReceiveBudget } from "../proto/streams/receive_budget.ts";
import { AgentAudit } from "./agent_audit.ts";
import { AgentMetrics, OWN_PREFIX, watchBudget } from "./agent_metrics.ts";
import { BenchTargets, isBenchDial } from "./bench_targets.ts";
import { Drain } from "./drain.ts";
import { followLeases, type LeaseCount } from "./kubernetes/lease_count.ts";
import { AttemptLog } from "./links/attempt_log.ts";
import { Connector } from "./links/connector.ts";
import type { LinkIdentity } from "./links/link_identity.ts";
import { LinkKeeper } from "./links/link_keeper.ts";
import { ServerRoad } from "./links/server_road.ts";
import type { AgentOptions } from "./options.ts";
import { PROXY_PATH } from "./proxy/proxy_path.ts";
import type { ServiceProxy } from "./proxy/service_proxy.ts";
import type { Relay, RelayEnvironment } from "./relay/relay.ts";
import { TargetDialer } from "./target_dialer.ts";

/** An agent that is up; its links may not be. */
export interface RunningAgent {
  /** Where it listens, ports of 0 resolved. */
  readonly addresses: {
    readonly health: string;
    readonly admin: string;
    /** Of the relays, if there are any. */
    readonly xds?: string;
    readonly connect?: string;
  };
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /** Announces the drain, serves what runs and what comes, then ends. */
  shutdown(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads certificates and keys again, for the next link. */
  reload(): void;
}

/** What an agent takes from the machine it runs on. */
export interface AgentEnvironment {
  readonly log: Log;
  /** `HTTPS_PROXY` and `NO_PROXY`. */
  readonly proxy: ProxyEnvironment;
  /** The process trusts no public CA; see `connectAgentTls`. */
  readonly trustsOnlyGiven?: boolean;
  /** In place of files; see `startJoinedAgent` and `startKubernetesAgent`. */
  readonly identity?: LinkIdentity;
  /** Uniform in [0, 1); the platform's when absent. */
  readonly random?: () => number;
  /** Makes the service proxy that is to run beside; absent: there is none. */
  readonly openProxy?: (metrics: MetricRegistry) => ServiceProxy;
  /** Opens the relays that the options ask for. */
  readonly openRelay?: (environment: RelayEnvironment) => Relay;
}

/**
 * Starts an agent. A server that cannot be reached is not an error: the agent
 * goes on trying.
 *
 * @throws {CredentialsError | ListenError} One sentence; nothing stays open.
 */
export function startAgent(
  options: AgentOptions,
  environment: AgentEnvironment,
): RunningAgent {
  const agent = new Agent(options, environment);
  try {
    return agent.open();
  } catch (error) {
    agent.closeListeners();
    throw error;
  }
}

const NO_SERVICES: readonly AnnouncedService[] = Object.freeze([]);

/** See the module description. */
class Agent {
  readonly #options: AgentOptions;
  readonly #log: Log;
  readonly #environment: AgentEnvironment;
  readonly #listeners: BoundListener[] = [];
  readonly #metricRegistry = new MetricRegistry();
  readonly #receiveBudget = new ReceiveBudget();
  readonly #metrics = new AgentMetrics(this.#metricRegistry);
  readonly #files: KeptFiles;
  readonly #credentials: Credentials;
  readonly #audit: AgentAudit | undefined;
  readonly #dialer: TargetDialer;
  readonly #keeper: LinkKeeper;
  readonly #drain: Drain;
  readonly #proxy: ServiceProxy | undefined;
  #relay: Relay | undefined;
  #leases: LeaseCount | undefined;
  /** What servers were told last that this node serves for others. */
  #announced: readonly AnnouncedService[];
  /** What servers do not take of it, as it was logged last. */
  #refusals = "";

  constructor(options: AgentOptions, environment: AgentEnvironment) {
    const { log, identity } = environment;
    const { server } = options;
    this.#options = options;
    this.#announced = this.#services;
    this.#log = log;
    this.#environment = environment;
    registerProcessMetrics(this.#metricRegistry);
    watchBudget(this.#metricRegistry, this.#receiveBudget);
    this.#files = new KeptFiles({
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
      prefix: OWN_PREFIX,
    });
    if (options.config !== undefined) this.#files.add(options.config);
    this.#credentials = this.#files.credentials(
      "server-link",
      identity?.files ?? {
        ca: server.caFile,
        cert: server.keyPair?.certFile,
        key: server.keyPair?.keyFile,
      },
      identity === undefined ? "by hand" : "by itself",
    );
    this.#audit = options.audit && new AgentAudit(options.audit, {
      agentId: options.agentId,
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
    });
    this.#proxy = environment.openProxy?.(this.#metricRegistry);
    this.#dialer = this.#createDialer();
    this.#keeper = this.#createKeeper(this.#createConnector());
    this.#drain = new Drain({
      announce: () => {
        log.info("draining: what runs and what still comes is served");
        this.#keeper.drain();
      },
      load: () =>
        this.#dialer.load + (this.#proxy?.load ?? 0) +
        (this.#relay?.load ?? 0),
      close: (reason) => {
        this.#leases?.stop();
        identity?.stop();
        this.#keeper.stop(reason);
        this.#relay?.close(reason);
        this.closeListeners();
      },
    }, systemTimers);
  }

  open(): RunningAgent {
    const { health, admin } = this.#options;
    const answer = admin === undefined ? metaHandler : healthHandler;
    const proxy = this.#proxy;
    const more: Routes = proxy === undefined
      ? {}
      : { [PROXY_PATH]: (url) => proxy.answer(url) };
    const healthListener = this.#serve(
      health,
      answer({
        metrics: this.#metricRegistry,
        checks: [{
          name: "server-connected",
          problem: () =>
            this.#keeper.linkedServers > 0 ? undefined : "no servers connected",
        }],
        notes: () => this.#files.notes,
        style: "agent",
      }, more),
    );
    const adminListener = admin && this.#serve(
      admin,
      adminHandler({ healthPort: healthListener.port }, more),
    );
    this.#relay = this.#environment.openRelay?.({
      road: this.#callRoad(),
      log: this.#log,
      metrics: this.#metricRegistry,
      loadChanged: () => this.#drain.loadChanged(),
    });
    const addresses = {
      health: healthListener.address,
      admin: (adminListener ?? healthListener).address,
      ...this.#relay?.addresses,
    };
    this.#log.info("agent started", {
      agent: this.#options.agentId,
      ...addresses,
    });
    const { leases } = this.#options;
    this.#leases = leases &&
      followLeases(
        leases,
        this.#log,
        this.#metricRegistry,
        () => this.#keeper.reconsider(),
      );
    this.#environment.identity?.start(this.#credentials);
    this.#files.start(() => this.#announceNew());
    this.#keeper.start();
    this.#proxy?.start();
    return {
      addresses,
      finished: this.#drain.finished
        .then(() => this.#proxy?.stop(0))
        .finally(() => this.#audit?.close()),
      shutdown: () => this.#shutdown(),
      stop: (reason) => this.#drain.now(reason),
      reload: () => {
        this.#proxy?.reload();
        this.#files.reload();
        this.#audit?.reopen();
      },
    };
  }

  #shutdown(): void {
    const { drainTimeoutMs } = this.#options;
    const { load: relayed = 0 } = this.#relay ?? {};
    // Without a link nothing runs here, and nothing can come.
    if (this.#keeper.linkedServers === 0 && !this.#proxy && relayed === 0) {
      return this.#drain.now("the agent is stopping");
    }
    this.#relay?.shutdown();
    void this.#proxy?.stop(drainTimeoutMs)
      .then(() => this.#drain.loadChanged());
    this.#drain.begin(drainTimeoutMs);
  }

  closeListeners(): void {
    this.#files.close();
    for (const listener of this.#listeners.splice(0)) listener.close();
  }

  /** Files were read again: what is served for others may be something else. */
  #announceNew(): void {
    const services = this.#services;
    if (services === this.#announced) return;
    this.#announced = services;
    this.#refusals = "";
    this.#keeper.announce(services);
  }

  get #services(): readonly AnnouncedService[] {
    const { services, liveServices } = this.#options;
    return liveServices?.() ?? services ?? NO_SERVICES;
  }

  /** Each link of a server hears the same. */
  #servicesRefused(refused: readonly ServiceRefusal[]): void {
    const text = JSON.stringify(refused);
    if (text === this.#refusals) return;
    this.#refusals = text;
    for (const { service, reason } of refused) {
      this.#log.warn(`the server does not take ${service}: ${reason}`);
    }
  }

  #createDialer(): TargetDialer {
    const { liveRules } = this.#options;
    const { hasBenchTarget, rules, ...dials } = this.#options.dials;
    const bench = new BenchTargets(
      {
        agentId: this.#options.agentId,
        software: `tunnel/${VERSION}`,
      },
      systemTimers,
      hasBenchTarget ? {} : { connectionsMax: 0 },
    );
    return new TargetDialer({
      clock: systemTimers,
      observer: this.#metrics.targetObserver(),
      ...(this.#audit === undefined ? {} : { begin: this.#audit.begin }),
      connect: (target, controller, onVerdict) => {
        if (!isBenchDial(target)) {
          const now = liveRules === undefined ? rules : liveRules();
          return dialTarget(target, {
            ...dials,
            ...(now === undefined ? {} : { rules: now }),
            ...(onVerdict === undefined ? {} : { onVerdict }),
            controller,
          });
        }
        onVerdict?.({ isAllowed: true, rule: "--bench-target" });
        return bench.dial();
      },
      loadChanged: () => this.#drain.loadChanged(),
    });
  }

  /** For calls as this node; as links, with what the identity is now. */
  #callRoad(): CallRoad {
    const road = new ServerRoad(
      this.#options.server.addresses,
      this.#credentials,
      this.#environment,
    );
    return {
      authority: road.authority,
      scheme: "https",
      connect: (use) =>
        road.open([HTTP2_ALPN], (transport) => Promise.resolve(use(transport))),
    };
  }

  #createConnector(): Connector {
    const { agentId, identifiers, server, messageOctetsMax } = this.#options;
    const { tokenFile } = server;
    const { identity } = this.#environment;
    const road = new ServerRoad(
      server.addresses,
      this.#credentials,
      this.#environment,
    );
    return new Connector({
      ...(tokenFile === undefined ? {} : { token: () => readToken(tokenFile) }),
      agentId,
      identifiers: identifiers ?? NO_IDENTIFIERS,
      services: () => this.#services,
      onServicesRefused: (refused) => this.#servicesRefused(refused),
      notAnnounced: (serverId) =>
        this.#log.warn(
          "the services of --announce are not announced: the link speaks " +
            "Konnectivity's protocol, which has no word for them",
          { server: serverId },
        ),
      alpnProtocols: server.alpnProtocols,
      carriers: server.carriers ?? ["streams", "packets"],
      authority: road.authority,
      keepaliveMs: server.keepaliveMs,
      messageOctetsMax,
      receiveBudget: this.#receiveBudget,
      timers: systemTimers,
      observer: this.#metrics.linkObserver(),
      onDial: this.#dialer.dial,
      openTransport: (alpn, use) => road.open(alpn, use),
      ...(identity?.trust === undefined
        ? {}
        : { onAuthorities: (bundle) => void identity.trust?.(bundle) }),
      fellBack: (serverId) => {
        this.#metrics.fellBack();
        this.#log.warn(
          "the link fell back to Konnectivity's protocol although the server " +
            "is ours: something on the way changes ALPN; a stalled connection " +
            "may hold up others",
          { server: serverId },
        );
      },
    });
  }

  #createKeeper(connector: Connector): LinkKeeper {
    const { server, sync } = this.#options;
    const log = this.#log;
    const attempts = new AttemptLog(log);
    return new LinkKeeper({
      connect: (onClosed) => connector.connect(onClosed),
      timers: systemTimers,
      random: this.#environment.random ?? Math.random,
      linksPerServer: server.links,
      intervalCapMs: sync.intervalCapMs,
      serversWanted: (reported) => this.#leases?.servers(reported) ?? reported,
      forever: sync.forever,
      observer: {
        linked: ({ serverId, carrier, serverCount }) => {
          attempts.linked();
          log.event("linked to server", {
            server: serverId,
            carrier,
            servers: serverCount,
          });
        },
        lost: ({ serverId }, reason) => {
          this.#metrics.serverFailed();
          log.event(`link lost: ${reason}`, { server: serverId });
        },
        failed: (reason, retryMs, error) => {
          this.#metrics.serverFailed();
          attempts.failed(reason, retryMs, error);
        },
        counted: (linked, known) => this.#metrics.servers(linked, known),
      },
    });
  }

  #serve(
    address: ListenAddress,
    handler: (request: Request) => Response,
  ): BoundListener {
    const listener = listenHttp(address, handler);
    this.#listeners.push(listener);
    return listener;
  }
}

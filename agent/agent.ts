/**
 * A tunnel agent: links to its servers, dials their targets, ends in order.
 *
 * @module
 */

import { DialReports } from "../platform/conduits/dial_reports.ts";
import { LiveConduits } from "../platform/conduits/live_conduits.ts";
import { RecentEvents, withEvents } from "../platform/log/recent_events.ts";
import { unawaited } from "../platform/errors/internal_errors.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { dialTarget } from "../net/dial/dial.ts";
import {
  adminHandler,
  healthHandler,
  metaHandler,
  type Routes,
} from "../net/admin/http_endpoints.ts";
import { profileRoutes } from "../net/admin/profile_routes.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHealth,
} from "../net/listen/listeners.ts";
import { ConnectionLog } from "../platform/log/connection_log.ts";
import type { HandoverFields } from "../net/handover/packet_socket.ts";
import { actionLog } from "../net/admin/admin_api.ts";
import type { HttpHandler } from "../net/admin/http_port.ts";
import { AdminPort, apiBeside } from "../net/listen/admin_port.ts";
import type { Log } from "../platform/log/log.ts";
import { MetricRegistry } from "../platform/metrics/metrics.ts";
import { registerInternalErrors } from "../platform/log/internal_error_log.ts";
import {
  registerLoopLag,
  registerProcessMetrics,
} from "../platform/metrics/process_metrics.ts";
import { registerBuildInfo } from "../platform/process/build_info.ts";
import { WatchedFiles } from "../net/tls/trust/watched_files.ts";
import { untilArrived } from "../platform/time/arrivals.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import type { Credentials } from "../net/tls/trust/credentials.ts";
import { VERSION } from "../platform/process/version.ts";
import { newInstanceId } from "../proto/peer/instance_id.ts";
import { ReceiveBudget } from "../proto/streams/receive_budget.ts";
import { AccessLog } from "../policy/access_log.ts";
import { AgentAudit } from "./dial/agent_audit.ts";
import {
  AGENT_PREFIX,
  AgentMetrics,
  watchBudget,
} from "./metrics/agent_metrics.ts";
import { Announcement } from "./links/announcement.ts";
import { BenchTargets, isBenchDial } from "./dial/bench_targets.ts";
import { AgentDrain } from "./drain.ts";
import type { AgentEnvironment } from "./environment.ts";
import { followLeases, type LeaseCount } from "./leases/lease_count.ts";
import type { AgentLinks } from "./links/agent_links.ts";
import { MachineWatch } from "./links/machine_watch.ts";
import { serverLinks } from "./links/server_links.ts";
import { linkUpstream } from "./links/link_upstream.ts";
import type { AgentOptions } from "./options.ts";
import { AGENT_EVENT_LINES } from "./shown_agent.ts";
import { PROXY_STATUS_PATH } from "../services/proxy/status/proxy_path.ts";
import type { ServiceProxy } from "../services/proxy/service_proxy.ts";
import type { Relay, RelayEnvironment } from "./relay/relay.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import { TargetDialer } from "./dial/target_dialer.ts";

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
  /** It was asked to end, or another process has taken its place. */
  readonly isDraining: boolean;
  /** What of its kind is linked: servers, for an agent. */
  readonly agents: number;
  /**
   * Settles when so many servers are linked, or those that cannot be reached at
   * once were waited for.
   */
  whenReady(servers: number): Promise<void>;
  /** Announces the drain, serves what runs and what comes, then ends. */
  shutdown(why?: string): void;
  /** See `Replaceable.awaitSuccessor`. */
  awaitSuccessor(ms: number): void;
  /** Another process has its ports: what runs goes on for a while. */
  handedOver(pid: number): void;
  /** See `Replaceable`. */
  readonly memory: Iterable<HandoverFields>;
  recall(part: HandoverFields): void;
  /** See `Replaceable.successorEnded`. */
  successorEnded(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads certificates and keys again, for the next link. */
  reload(): void;
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

class Agent {
  readonly #log: Log;
  readonly #environment: AgentEnvironment;
  readonly #listeners: BoundListener[] = [];
  readonly #metricRegistry = new MetricRegistry();
  readonly #receiveBudget = new ReceiveBudget();
  readonly #metrics = new AgentMetrics(this.#metricRegistry);
  readonly #files: WatchedFiles;
  readonly #credentials: Credentials;
  readonly #audit: AgentAudit | undefined;
  readonly #access: AccessLog | undefined;
  readonly #announcement: Announcement;
  readonly #dialer: TargetDialer;
  readonly #links: AgentLinks;
  readonly #drain: AgentDrain;
  readonly #proxy: ServiceProxy | undefined;
  #relay: Relay | undefined;
  #watch: MachineWatch | undefined;
  #leases: LeaseCount | undefined;

  /** What is told of it to who asks. */
  readonly #conduits = new LiveConduits(systemTimers);
  readonly #events = new RecentEvents();
  #addresses: RunningAgent["addresses"] | undefined;

  constructor(private readonly options: AgentOptions, given: AgentEnvironment) {
    const log = withEvents(given.log, this.#events, AGENT_EVENT_LINES);
    const environment = { ...given, log };
    const { identity } = environment;
    const { server } = options;
    this.#announcement = new Announcement(options, log);
    this.#log = log;
    this.#environment = environment;
    registerProcessMetrics(this.#metricRegistry);
    registerLoopLag(this.#metricRegistry);
    registerBuildInfo(this.#metricRegistry);
    registerInternalErrors(this.#metricRegistry, "tunnel_agent");
    watchBudget(this.#metricRegistry, this.#receiveBudget);
    this.#files = new WatchedFiles({
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
      prefix: AGENT_PREFIX,
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
    this.#access = AccessLog.open(options.access, {
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
      prefix: AGENT_PREFIX,
    });
    this.#proxy = environment.openProxy?.({
      log,
      conduits: this.#conduits,
      events: this.#events,
      metrics: this.#metricRegistry,
      access: this.#access,
    });
    this.#dialer = this.#createDialer();
    this.#links = serverLinks({
      options,
      environment,
      credentials: this.#credentials,
      receiveBudget: this.#receiveBudget,
      metrics: this.#metrics,
      announcement: this.#announcement,
      instanceId: options.instanceId ??
        newInstanceId((bytes) => crypto.getRandomValues(bytes)),
      onDial: this.#dialer.dial,
      serversWanted: (reported) => this.#leases?.servers(reported) ?? reported,
    });
    this.#drain = new AgentDrain({
      announce: () => this.#links.drain(),
      load: () => this.#load,
      isLinked: () => this.#links.linkedServers > 0,
      areTold: () => this.#links.areTold,
      close: (reason) => this.#close(reason),
    }, systemTimers);
  }

  #close(reason: string): void {
    this.#leases?.stop();
    this.#watch?.stop();
    this.#environment.identity?.stop();
    this.#links.stop(reason);
    this.#relay?.close(reason);
    this.#conduits.stop();
    this.closeListeners();
  }

  open(): RunningAgent {
    const { health, admin } = this.options;
    const answer = admin === undefined ? metaHandler : healthHandler;
    const proxy = this.#proxy;
    const more: Routes = proxy === undefined
      ? {}
      : { [PROXY_STATUS_PATH]: (url) => proxy.answer(url) };
    const healthListener = this.#serve(
      health,
      answer({
        metrics: this.#metricRegistry,
        checks: [{ name: "server-connected", problem: () => this.#problem }],
        notes: () => this.#files.notes,
        style: "agent",
      }, more),
    );
    const adminPort = this.#openAdmin(
      admin,
      adminHandler({ healthPort: healthListener.port }, {
        ...more,
        ...this.options.profiling === true ? profileRoutes() : {},
      }),
    );
    this.#relay = this.#environment.openRelay?.({
      ...this.#waysOfCalls(),
      log: this.#log,
      metrics: this.#metricRegistry,
      loadChanged: () => this.#drain.loadChanged(),
    });
    const addresses = this.#addresses = {
      health: healthListener.address,
      admin: (admin === undefined ? healthListener : adminPort).address,
      ...this.#relay?.addresses,
    };
    this.#log.info("agent started", {
      agent: this.options.agentId,
      ...addresses,
    });
    const { leases } = this.options;
    this.#leases = leases &&
      followLeases(
        leases,
        this.#log,
        this.#metricRegistry,
        (areMore) => this.#links.reconsider(areMore),
      );
    this.#environment.identity?.start(this.#credentials);
    this.#files.start(() => this.#announceNew());
    this.#links.start();
    this.#watch = new MachineWatch({
      timers: systemTimers,
      wallClock: Date.now,
      changed: (why) => {
        this.#log.detail(`${why}: looks at its links`);
        this.#links.recheck();
      },
    });
    this.#proxy?.start();
    return this.#running(addresses);
  }

  #running(addresses: RunningAgent["addresses"]): RunningAgent {
    const [drain, links, proxy] = [this.#drain, this.#links, this.#proxy];
    return {
      addresses,
      finished: drain.finished
        .then(() => this.#proxy?.stop(0))
        .then(() => this.#log.info("the agent has ended"))
        .finally(() =>
          Promise.all([this.#audit?.close(), this.#access?.close()])
        ),
      get isDraining() {
        return drain.isDraining;
      },
      get agents() {
        return links.linkedServers;
      },
      whenReady: (servers) =>
        untilArrived(systemTimers, servers, () => {
          if (drain.isDraining) return Infinity;
          return this.#proxy?.problem === undefined ? links.linkedServers : -1;
        }, false),
      shutdown: (why = "asked to end") => this.#shutdown(why),
      awaitSuccessor: (ms) => drain.awaitSuccessor(ms),
      handedOver: (pid) => this.#handedOver(pid),
      get memory() {
        return proxy?.memory ?? [];
      },
      recall: (part) => proxy?.recall(part),
      successorEnded: () => proxy?.successorEnded(),
      stop: (reason) => drain.now(reason),
      reload: () => {
        this.#proxy?.reload();
        this.#files.reload();
        this.#audit?.reopen();
        this.#access?.reopen();
      },
    };
  }

  /** Dials, conduits and clients of its own ports. */
  get #load(): number {
    return this.#dialer.load + (this.#proxy?.load ?? 0) +
      (this.#relay?.load ?? 0);
  }

  /** Why it is not ready. */
  get #problem(): string | undefined {
    return this.#drain.isDraining
      ? "the agent is stopping"
      : this.#links.linkedServers > 0
      ? undefined
      : "no servers connected";
  }

  #shutdown(why: string): void {
    const { drainTimeoutMs } = this.options;
    const load = this.#load;
    // Without a link nothing runs here, and nothing can come.
    const isIdle = this.#links.linkedServers === 0 && load === 0;
    this.#log.info(
      isIdle
        ? `${why}: nothing runs, and no server is linked`
        : `${why}: draining, ${load} connections, at most ` +
          `${drainTimeoutMs / 1000} s; what still comes is served`,
    );
    this.#drain.begin(drainTimeoutMs);
    this.#watchProxy();
  }

  #handedOver(pid: number): void {
    const { drainTimeoutMs } = this.options;
    this.#log.info(
      `handed over to process ${pid}: ${this.#load} connections may go on, ` +
        `at most ${drainTimeoutMs / 1000} s`,
    );
    this.#proxy?.retire();
    this.#relay?.shutdown();
    this.#drain.awaitSuccessor(0);
    this.#drain.begin(drainTimeoutMs);
    this.#watchProxy();
  }

  /** Nothing tells that the proxy has become idle, or is so no longer. */
  #watchProxy(): void {
    const proxy = this.#proxy;
    if (proxy === undefined) return;
    let wasBusy = proxy.load > 0;
    const look = () => {
      const isBusy = proxy.load > 0;
      if (isBusy !== wasBusy) this.#drain.loadChanged();
      wasBusy = isBusy;
      timer = systemTimers.after(PROXY_LOOK_MS, look);
    };
    let timer = systemTimers.after(PROXY_LOOK_MS, look);
    unawaited("proxy", this.#drain.finished.then(() => timer.cancel()));
  }

  closeListeners(): void {
    this.#files.close();
    for (const listener of this.#listeners.splice(0)) listener.close();
  }

  /** Files were read again: what is served for others may be something else. */
  #announceNew(): void {
    const services = this.#announcement.renewed();
    if (services !== undefined) this.#links.announce(services);
  }

  #createDialer(): TargetDialer {
    const { liveRules } = this.options;
    const { hasBenchTarget, rules, ...dials } = this.options.dials;
    const bench = new BenchTargets(
      {
        agentId: this.options.agentId,
        software: `tunnel/${VERSION}`,
      },
      systemTimers,
      hasBenchTarget ? {} : { connectionsMax: 0 },
    );
    return new TargetDialer({
      clock: systemTimers,
      observer: this.#metrics.targetObserver(),
      reports: new DialReports({
        log: new ConnectionLog(this.#log, systemTimers, this.#access),
        conduits: this.#conduits,
        failed: ({ message }) => this.#events.note("dial-failed", message),
      }),
      ...(this.#audit === undefined ? {} : { begin: this.#audit.begin }),
      connect: (target, controller, onDecision) => {
        const now = liveRules === undefined ? rules : liveRules();
        if (isBenchDial(target)) return bench.dialBy(target, now, onDecision);
        return dialTarget(target, {
          ...dials,
          ...(now === undefined ? {} : { rules: now }),
          ...(onDecision === undefined ? {} : { onDecision }),
          controller,
        });
      },
      loadChanged: () => this.#drain.loadChanged(),
    });
  }

  /** For calls as this node; as links, with what the identity is now. */
  #callUpstream(addresses = this.options.server.addresses): Upstream {
    return linkUpstream(addresses, this.#credentials, this.#environment);
  }

  /** To all servers, and to each alone where it is known which there are. */
  #waysOfCalls(): Pick<RelayEnvironment, "upstream" | "servers"> {
    const { addresses } = this.options.server;
    const upstream = this.#callUpstream();
    const isFound = this.#environment.identity?.findServers !== undefined;
    if (isFound || addresses.length < 2) return { upstream };
    const servers = addresses.map((address) => ({
      name: hostPort(address.host, address.port),
      upstream: this.#callUpstream([address]),
    }));
    return { upstream, servers };
  }

  /** @param address Absent: by a socket alone, if one is named. */
  #openAdmin(
    address: ListenAddress | undefined,
    handler: HttpHandler,
  ): AdminPort {
    const { identity, adminAccess } = this.options;
    const port = new AdminPort({
      address,
      access: { stateDirectory: identity?.stateDirectory, ...adminAccess },
      handler: apiBeside(
        this.#environment.show({
          options: this.options,
          conduits: this.#conduits,
          events: this.#events,
          files: this.#files,
          links: this.#links,
          announcement: this.#announcement,
          proxy: this.#proxy,
          state: () => ({
            addresses: this.#addresses ?? {},
            isReady: this.#problem === undefined,
            isDraining: this.#drain.isDraining,
          }),
        }),
        () => handler,
        actionLog(this.#log, (action) => this.#audit?.acted(action)),
      ),
      log: this.#log,
    });
    this.#listeners.push(port);
    port.openSoon();
    return port;
  }

  #serve(
    address: ListenAddress,
    handler: (request: Request) => Response,
  ): BoundListener {
    const listener = listenHealth(address, handler);
    this.#listeners.push(listener);
    return listener;
  }
}

/** How often a proxy is asked whether somebody is connected, at the end. */
const PROXY_LOOK_MS = 250;

/**
 * A tunnel agent: links to its servers, dials their targets, ends in order.
 *
 * @module
 */

import type { Upstream } from "../net/channel/upstream.ts";
import { dialTarget } from "../net/dial/dial.ts";
import { actionLog } from "../net/admin/admin_api.ts";
import {
  adminHandler,
  healthHandler,
  metaHandler,
  type Routes,
} from "../net/admin/http_endpoints.ts";
import { profileRoutes } from "../net/admin/profile_routes.ts";
import { type AdminPort, apiBeside } from "../net/listen/admin_port.ts";
import type { BoundListener } from "../net/listen/listeners.ts";
import { Program, type Replaceable } from "../net/program/program.ts";
import { Arrivals } from "../platform/time/arrivals.ts";
import type { Credentials } from "../net/tls/trust/credentials.ts";
import { VERSION } from "../platform/process/version.ts";
import { newInstanceId } from "../proto/peer/peer_identity.ts";
import { ReceiveBudget } from "../proto/streams/receive_budget.ts";
import { TargetDialer } from "./dial/target_dialer.ts";
import { AgentMetrics } from "./metrics/agent_metrics.ts";
import { watchBudget } from "../platform/metrics/process_metrics.ts";
import { Announcement } from "./links/announcement.ts";
import { BenchTargets, isBenchDial } from "./dial/bench_targets.ts";
import { AgentDrain } from "./drain.ts";
import { AGENT_EVENT_LINES, type AgentEnvironment } from "./shown_agent.ts";
import { followLeases, type LeaseCount } from "./leases/lease_count.ts";
import type { AgentLinks } from "./links/agent_links.ts";
import { MachineWatch } from "./links/machine_watch.ts";
import { serverLinks } from "./links/server_links.ts";
import { linkUpstream } from "./links/link_upstream.ts";
import type { AgentOptions } from "./options.ts";
import type { ServiceProxy } from "../services/proxy/service_proxy.ts";
import type { Relay, RelayWays } from "./relay/relay.ts";
import { hostPort } from "../proto/peer/host_port.ts";

/** An agent that is up; its links may not be. */
export interface RunningAgent extends Replaceable {
  /** The bound addresses; ports of 0 are resolved. */
  readonly addresses: {
    readonly health: string;
    readonly admin: string;
    /** Addresses of the relays, if there are any. */
    readonly xds?: string;
    readonly connect?: string;
  };
  /** What of its kind is linked: servers, for an agent. */
  readonly agents: number;
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
  const program = new Program({
    kind: "agent",
    eventLines: AGENT_EVENT_LINES,
    access: options.access,
    audit: options.audit,
  }, environment.log);
  try {
    const { log } = program;
    return new Agent(options, { ...environment, log }, program).open();
  } catch (error) {
    program.close();
    throw error;
  }
}

class Agent {
  readonly #receiveBudget = new ReceiveBudget();
  readonly #metrics: AgentMetrics;
  readonly #credentials: Credentials;
  readonly #announcement: Announcement;
  readonly #dialer: TargetDialer;
  readonly #links: AgentLinks;
  readonly #drain: AgentDrain;
  readonly #arrivals: Arrivals;
  readonly #proxy: ServiceProxy | undefined;
  #relay: Relay | undefined;
  #watch: MachineWatch | undefined;
  #leases: LeaseCount | undefined;
  #addresses: RunningAgent["addresses"] | undefined;

  constructor(
    private readonly options: AgentOptions,
    private readonly environment: AgentEnvironment,
    private readonly program: Program,
  ) {
    const { files, log, metrics, timers } = program;
    const { identity } = environment;
    const { server } = options;
    this.#metrics = new AgentMetrics(metrics);
    watchBudget(metrics, program.prefix, this.#receiveBudget);
    this.#announcement = new Announcement(options, log);
    if (options.config !== undefined) files.add(options.config);
    this.#credentials = files.credentials(
      "server-link",
      identity?.files ?? {
        ca: server.caFile,
        cert: server.keyPair?.certFile,
        key: server.keyPair?.keyFile,
      },
      identity === undefined ? "by hand" : "by itself",
    );
    this.#arrivals = new Arrivals(timers, () => this.#arrived);
    this.#proxy = environment.openProxy?.(program, () => this.#loadChanged());
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
      changed: () => this.#arrivals.changed(),
    });
    this.#drain = new AgentDrain({
      announce: () => {
        this.#links.drain();
        this.#arrivals.changed();
      },
      load: () => this.#load,
      isLinked: () => this.#links.linkedServers > 0,
      areTold: () => this.#links.areTold,
      close: (reason) => this.#close(reason),
    }, timers);
  }

  async #close(reason: string): Promise<void> {
    this.#leases?.stop();
    this.#watch?.stop();
    const identityStops = this.environment.identity?.stop();
    this.#links.stop(reason);
    this.#relay?.close(reason);
    this.program.close();
    await identityStops;
  }

  open(): RunningAgent {
    const { log } = this.program;
    const more = this.#proxy?.openRoutes ?? {};
    const health = this.#openHealth(more);
    const admin = this.#openAdmin(health.port, more);
    this.#relay = this.environment.openRelay?.(
      this.#waysOfCalls(),
      this.program,
      () => this.#drain.loadChanged(),
    );
    const addresses = this.#addresses = {
      health: health.address,
      admin: admin.address || health.address,
      ...this.#relay?.addresses,
    };
    log.info("agent started", { agent: this.options.agentId, ...addresses });
    this.#start();
    return this.#running(addresses);
  }

  #start(): void {
    const { log, files, timers } = this.program;
    const { leases } = this.options;
    this.#leases = leases && followLeases(
      leases,
      this.program,
      (areMore) => this.#links.reconsider(areMore),
    );
    this.environment.identity?.start(this.#credentials);
    files.start(() => this.#announceNew());
    this.#links.start();
    this.#watch = new MachineWatch({
      timers,
      wallClock: Date.now,
      changed: (why) => {
        log.detail(`${why}: looks at its links`);
        this.#links.recheck();
      },
    });
    this.#proxy?.start();
  }

  #running(addresses: RunningAgent["addresses"]): RunningAgent {
    const [drain, links, proxy] = [this.#drain, this.#links, this.#proxy];
    return {
      addresses,
      finished: drain.finished
        .then(() => this.#proxy?.stop(0))
        .then(() => this.program.log.info("the agent has ended"))
        .finally(() => this.program.end()),
      get isDraining() {
        return !drain.isRunning;
      },
      get agents() {
        return links.linkedServers;
      },
      whenReady: (servers) => this.#arrivals.until(servers),
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
        this.program.reload();
      },
    };
  }

  /** Servers that are linked; none where its own ports are not open yet. */
  get #arrived(): number {
    if (!this.#drain.isRunning) return Infinity;
    return this.#proxy?.problem === undefined ? this.#links.linkedServers : -1;
  }

  /** Its service proxy serves more, or less. */
  #loadChanged(): void {
    this.#arrivals.changed();
    this.#drain.loadChanged();
  }

  /** Dials, conduits, and clients of its own ports. */
  get #load(): number {
    return this.#metrics.load + (this.#proxy?.load ?? 0) +
      (this.#relay?.load ?? 0);
  }

  /** Why it is not ready. */
  get #problem(): string | undefined {
    return !this.#drain.isRunning
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
    this.program.log.info(
      isIdle
        ? `${why}: nothing runs, and no server is linked`
        : `${why}: draining, ${load} connections, at most ` +
          `${drainTimeoutMs / 1000} s; what still comes is served`,
    );
    this.#drain.begin(drainTimeoutMs);
  }

  #handedOver(pid: number): void {
    const { drainTimeoutMs } = this.options;
    this.program.log.info(
      `handed over to process ${pid}: ${this.#load} connections may go on, ` +
        `at most ${drainTimeoutMs / 1000} s`,
    );
    this.#proxy?.retire();
    this.#relay?.shutdown();
    this.#drain.awaitSuccessor(0);
    this.#drain.begin(drainTimeoutMs);
  }

  /** Files were read again: the announced services may have changed. */
  #announceNew(): void {
    const services = this.#announcement.renewed();
    if (services !== undefined) this.#links.announce(services);
  }

  #createDialer(): TargetDialer {
    const { agentId } = this.options;
    const { trail } = this.program;
    const { hasBenchTarget, rules, ...dials } = this.options.dials;
    const bench = new BenchTargets(
      { agentId, software: `tunnel/${VERSION}` },
      this.program.timers,
      hasBenchTarget ? undefined : 0,
    );
    return new TargetDialer({
      clock: this.program.timers,
      reports: this.program.reports(
        ({ message }) => this.program.events.note("dial-failed", message),
        this.#metrics.dialWitness(() => this.#drain.loadChanged()),
      ),
      begin: trail &&
        ((target, id) => trail.begin({ id, node: agentId, target })),
      connect: (target, controller, onDecision) => {
        const how = { ...dials, rules: rules?.(), onDecision, controller };
        return isBenchDial(target)
          ? bench.dialBy(target, how.rules, onDecision)
          : dialTarget(target, how);
      },
    });
  }

  /** For calls as this node, and for links, with the present identity. */
  #callUpstream(addresses = this.options.server.addresses): Upstream {
    return linkUpstream(addresses, this.#credentials, this.environment);
  }

  /** To all servers, or to each one when they are known. */
  #waysOfCalls(): RelayWays {
    const { addresses } = this.options.server;
    const upstream = this.#callUpstream();
    const isFound = this.environment.identity?.findServers !== undefined;
    if (isFound || addresses.length < 2) return { upstream };
    const servers = addresses.map((address) => ({
      name: hostPort(address.host, address.port),
      upstream: this.#callUpstream([address]),
    }));
    return { upstream, servers };
  }

  #openHealth(more: Routes): BoundListener {
    const { health, admin } = this.options;
    const { files, metrics } = this.program;
    const answer = admin === undefined ? metaHandler : healthHandler;
    return this.program.openHealth(
      health,
      answer({
        metrics,
        checks: [{ name: "server-connected", problem: () => this.#problem }],
        notes: () => files.notes,
        style: "agent",
      }, more),
    );
  }

  /** Without an address it is reached by a socket, if one is configured. */
  #openAdmin(healthPort: number, more: Routes): AdminPort {
    const { admin, identity, adminAccess, profiling } = this.options;
    const { program } = this;
    const handler = adminHandler({ healthPort }, {
      ...more,
      ...profiling === true ? profileRoutes() : {},
    });
    const shown = this.environment.show({
      options: this.options,
      program,
      links: this.#links,
      announcement: this.#announcement,
      proxy: this.#proxy,
      state: () => ({
        addresses: this.#addresses ?? {},
        isReady: this.#problem === undefined,
        isDraining: !this.#drain.isRunning,
      }),
    });
    const did = actionLog(
      program.log,
      (action) => program.trail?.acted(action),
    );
    const port = program.openAdmin({
      address: admin,
      access: { stateDirectory: identity?.stateDirectory, ...adminAccess },
      handler: apiBeside(shown, () => handler, did),
    });
    port.openSoon();
    return port;
  }
}

/**
 * A tunnel server: opens the ports, joins the parts, ends in order.
 *
 * Reading order: `startServer`, then `Server.open`. What all parts stand on is
 * `server_core.ts`; agents come in by `server_agents.ts`, callers by
 * `server_frontends.ts`, and what nodes want beside links by `server_nodes.ts`.
 *
 * @module
 */

import { hostname } from "node:os";
import { programInfo } from "../net/admin/own_facts.ts";
import type { ServerDiscovery } from "./discovery/server_discovery.ts";
import { unawaited } from "../platform/errors/internal_errors.ts";
import { healthHandler } from "../net/admin/http_endpoints.ts";
import { Program, type Replaceable } from "../net/program/program.ts";
import type { Log } from "../platform/log/log.ts";
import { Arrivals } from "../platform/time/arrivals.ts";
import { socketStore } from "../net/bind/socket_store.ts";
import {
  serverAdminPort,
  type ServerParts,
  type ShownServer,
  type ShowServer,
} from "./assembly/server_admin_port.ts";
import type { ServerKubernetes } from "./cluster/server_kubernetes.ts";
import type { ServerOptions } from "./options.ts";
import { PASSED_ARRIVAL_MS, Readiness, Shutdown } from "./assembly/shutdown.ts";
import { ServerAgents } from "./assembly/server_agents.ts";
import { SERVER_EVENT_LINES, ServerCore } from "./assembly/server_core.ts";
import { ServerFrontends } from "./assembly/server_frontends.ts";
import { ServerNodes } from "./assembly/server_nodes.ts";

/** A server that is up. */
export interface RunningServer extends Replaceable {
  /** The bound address; a port of 0 is resolved. */
  readonly addresses: {
    readonly frontend: string;
    readonly agents: string;
    readonly health: string;
    readonly admin: string;
    /** The path where it answers, too. */
    readonly adminSocket?: string;
    /** The address for other machines, if there is one. */
    readonly adminRemote?: string;
    /** The address of the kubelet front end, if there is one. */
    readonly kubelet?: string;
    /**
     * The address of discovery for programs on this machine, if there is one.
     */
    readonly discovery?: string;
  };
  /** How many agents are linked. */
  readonly agents: number;
}

/**
 * Opens all ports.
 *
 * @param show Makes what people see of it.
 * @throws {CredentialsError | ListenError} One sentence; nothing stays open.
 */
export async function startServer(
  options: ServerOptions,
  log: Log,
  show: ShowServer,
): Promise<RunningServer> {
  const { access, authorization } = options;
  const program = new Program({
    kind: "server",
    eventLines: SERVER_EVENT_LINES,
    access,
    audit: authorization?.audit,
  }, log);
  let server: Server | undefined;
  try {
    server = new Server(options, program, show);
    return await server.open();
  } catch (error) {
    server?.abandon("the server does not start");
    program.close();
    unawaited("task", program.end());
    throw error;
  }
}

/** One server, from its ports to its end. */
class Server {
  readonly #core: ServerCore;
  readonly #readiness: Readiness;
  readonly #nodes: ServerNodes;
  readonly #agents: ServerAgents;
  readonly #frontends: ServerFrontends;
  readonly #shutdown: Shutdown;
  readonly #arrivals: Arrivals;
  #kubernetes: ServerKubernetes | undefined;
  #shown: ShownServer | undefined;
  #addresses: Readonly<Record<string, string>> = {};
  /** 1 while another process may pass connections on. */
  #arriving: 0 | 1 = 0;

  constructor(
    options: ServerOptions,
    private readonly program: Program,
    private readonly show: ShowServer,
  ) {
    const { timers } = program;
    const core = new ServerCore(
      options,
      program,
      () => this.#shutdown.loadChanged(),
    );
    this.#core = core;
    this.#shutdown = new Shutdown({
      announce: () => this.#announceEnd(),
      load: () =>
        core.metrics.established + core.metrics.pendingDials +
        this.#agents.leaving + this.#arriving,
      letGo: () => this.#letGo(),
      refuse: () => {
        this.#nodes.drain("the server is stopping");
        const isCalled = this.#frontends.refuse("the server is stopping");
        return isCalled || this.#nodes.links.length > 0;
      },
      refuseDials: () => {
        core.dialer.isEnding = true;
        return this.#frontends.areCalled;
      },
      closeAll: (reason) => this.#closeAll(reason),
    }, timers);
    this.#arrivals = new Arrivals(
      timers,
      () => this.#shutdown.isRunning ? core.registry.agents : Infinity,
    );
    this.#readiness = new Readiness({
      isRunning: () => this.#shutdown.isRunning,
      hasAgents: () => core.registry.isReady,
      changed: () => this.#arrivals.changed(),
    });
    this.#nodes = new ServerNodes(core, (one) => this.#agents.admit(one));
    this.#agents = new ServerAgents(core, this.#nodes, this.#readiness);
    this.#frontends = new ServerFrontends(core, this.#readiness.methods);
  }

  async open(): Promise<RunningServer> {
    const { options, limiter } = this.#core;
    const { log, files, metrics } = this.program;
    // Everything is checked before anything is offered.
    await this.#core.connectStore();
    this.#kubernetes = await this.#openKubernetes();
    const agentFiles = await this.#agents.openTrust(
      this.#kubernetes?.authenticators,
    );
    const discovery = await this.#nodes.openDiscovery(
      this.#agents.identity?.state,
    );
    const frontend = await this.#frontends.listen();
    const agents = await this.#agents.listen();
    const kubelet = await this.#frontends.listenKubelet(agentFiles);
    const health = this.program.openHealth(
      options.health,
      healthHandler({
        metrics,
        checks: [
          {
            name: "agent-connected",
            problem: () => this.#readiness.problem(),
          },
          ...discovery === undefined ? [] : [{
            name: "catalog-read",
            problem: () => discovery.problem,
          }],
        ],
        notes: () => [...files.notes, ...this.#agents.notes],
        style: "server",
      }),
      (limit, scope) => limiter.reached(limit, scope),
    );
    const shown = this.#shown = this.show(
      this.#parts(discovery),
      this.#core.authorization,
    );
    const admin = serverAdminPort(this.#core, { shown, agentFiles });
    await admin.open();
    this.#watchFiles();
    this.#kubernetes?.start();
    discovery?.start();
    await this.#agents.start(agents);
    const addresses = {
      frontend,
      agents,
      health: health.address,
      admin: admin.address,
      ...(admin.socket === "" ? {} : { adminSocket: admin.socket }),
      ...(admin.remote === "" ? {} : { adminRemote: admin.remote }),
      ...(kubelet === undefined ? {} : { kubelet }),
      ...(discovery?.address && { discovery: discovery.address }),
    };
    this.#addresses = addresses;
    this.#readiness.report();
    log.info("server started", { server: options.serverId, ...addresses });
    return this.#running(addresses);
  }

  /** Its facts about itself, and its answers. */
  #parts(discovery: ServerDiscovery | undefined): ServerParts {
    const { limiter, metrics, options, peers, registry } = this.#core;
    const { conduits, events, files, timers, trail } = this.program;
    const { listen } = options.frontend;
    const agents = this.#agents;
    const host = hostname();
    return {
      ...{ conduits, events, files, timers, peers, registry, discovery },
      serverId: options.serverId,
      history: agents.history,
      identity: agents.identity,
      allowsAnonymous: options.agents.allowAnonymous,
      socket: listen.kind === "unix" ? listen.path : "",
      flags: options.shownFlags,
      audit: trail && ((limit) => trail.tail(limit)),
      program: () =>
        programInfo({
          program: "server",
          id: options.serverId,
          host,
          isReady: this.#readiness.problem() === undefined,
          isDraining: !this.#shutdown.isRunning,
          addresses: this.#addresses,
        }),
      problem: () => this.#readiness.problem(),
      pendingDials: () => metrics.pendingDials,
      reachedLimits: () => limiter.reachedLimits,
      duplicates: () => agents.duplicates,
      drain: (link) => agents.drainLink(link),
    };
  }

  /** Closes everything that is open. */
  abandon(reason: string): void {
    this.#frontends.drain(reason);
    this.#stopPorts(reason);
    unawaited(
      "task",
      Promise.all([this.#nodes.stop(reason), this.#core.peers.stop()])
        .finally(() => this.#core.state?.close()),
    );
  }

  #running(addresses: RunningServer["addresses"]): RunningServer {
    const { options, registry } = this.#core;
    const { log } = this.program;
    const shutdown = this.#shutdown;
    const timeoutMs = options.shutdownTimeoutMs;
    const finished = shutdown.finished
      .then(() => log.info("the server has ended"))
      .finally(() => this.program.end());
    return {
      addresses,
      finished,
      early: [`tcp ${addresses.agents}`],
      late: [addresses.frontend, addresses.kubelet ?? ""]
        .filter((address) => address !== "")
        .map((address) =>
          `${address.includes("/") ? "unix" : "tcp"} ${address}`
        ),
      get isDraining() {
        return !shutdown.isRunning;
      },
      get agents() {
        return registry.agents;
      },
      whenReady: (agents, isServed) => this.#arrivals.until(agents, isServed),
      shutdown: (why = "asked to end") => {
        if (shutdown.isRunning) {
          log.info(`${why}: draining, ${this.#load}; new callers are served`);
        }
        shutdown.begin(timeoutMs);
      },
      awaitSuccessor: (ms) => shutdown.awaitSuccessor(ms),
      handedOverEarly: (pid) => {
        log.info(`process ${pid} accepts agents; agents here go there`);
        this.#agents.drain("another process takes over", SPREAD_MS_MAX);
      },
      handedOver: (pid) => {
        log.info(`handed over to process ${pid}: ${this.#load}`);
        shutdown.handedOver(timeoutMs);
      },
      stop: (reason) => this.#shutdown.now(reason),
      reload: () => {
        this.program.reload();
        this.#agents.reload();
        this.#agents.reconsider();
      },
    };
  }

  /** What runs, and how long it may, as text. */
  get #load(): string {
    const { metrics, options } = this.#core;
    const { established, pendingDials } = metrics;
    return `${established} connections and ${pendingDials} dials, at most ` +
      `${options.shutdownTimeoutMs / 1000} s`;
  }

  async #openKubernetes(): Promise<ServerKubernetes | undefined> {
    const { options } = this.#core;
    const { kubernetes, serverId, agents } = options;
    if (kubernetes === undefined) return undefined;
    // Loaded when wanted: most servers know no API server.
    const { openKubernetes } = await import(
      "./cluster/server_kubernetes.ts"
    );
    const server = { serverId, nodeBinding: agents.nodeBinding ?? "warn" };
    // The lease belongs to the part that joins the other servers.
    const { lease: _, ...others } = kubernetes;
    const own = this.#core.state?.kind === "kubernetes" ? others : kubernetes;
    return openKubernetes(own, server, this.program);
  }

  #watchFiles(): void {
    const { options, authorization } = this.#core;
    const { files } = this.program;
    for (const source of [authorization.source, options.config]) {
      if (source !== undefined) files.add(source);
    }
    files.start(() => this.#agents.reconsider());
  }

  // --- The end ---------------------------------------------------------------

  /** Sockets are another process's from now on, where one keeps them. */
  #letGo(): boolean {
    const store = socketStore();
    if (store?.areKept !== true) return false;
    store.handOver();
    const settled = store.sharing?.settled();
    if (settled === undefined) return true;
    this.#arriving = 1;
    const arrived = () => {
      this.#arriving = 0;
      this.#shutdown.loadChanged();
    };
    unawaited(
      "task",
      settled.then(() =>
        void this.program.timers.after(PASSED_ARRIVAL_MS, arrived)
      ),
    );
    return true;
  }

  #announceEnd(): void {
    this.#readiness.report();
    this.#kubernetes?.retire();
    this.#core.peers.retire();
    // A client whose stream ends makes the next one elsewhere, not on this connection.
    const { shutdownTimeoutMs } = this.#core.options;
    this.#agents.drain("the server is stopping", shutdownTimeoutMs / 2);
    this.#nodes.drain("the server is stopping");
    this.#frontends.drain("the server is stopping");
  }

  async #closeAll(reason: string): Promise<void> {
    this.#stopPorts(reason);
    await Promise.all([
      this.#kubernetes?.stop(),
      this.#core.peers.stop(),
      this.#nodes.stop(reason),
      this.#agents.history.close(),
    ]);
    this.#core.state?.close();
  }

  #stopPorts(reason: string): void {
    this.program.close();
    this.#shown?.stop();
    this.#agents.stop(reason);
    this.#frontends.stop(reason);
  }
}

/** Over which time agents go to a successor: all before it waits no more. */
const SPREAD_MS_MAX = 3_000;

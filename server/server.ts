/**
 * A tunnel server: opens the ports, joins the parts, ends in order.
 *
 * Reading order: `startServer`, then `Server.open`. What all parts stand on is
 * `server_core.ts`; agents come in by `server_agents.ts`, callers by
 * `server_frontends.ts`, and what nodes want beside links by `server_nodes.ts`.
 *
 * @module
 */

import {
  adminHandler,
  healthHandler,
  type Routes,
} from "../host/listen/http_endpoints.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHttp,
} from "../host/listen/listeners.ts";
import type { Log } from "../host/process/log.ts";
import { systemTimers } from "../host/process/system_timers.ts";
import { guardDebug } from "./admin_access.ts";
import type { ServerKubernetes } from "./kubernetes/server_kubernetes.ts";
import type { ServerOptions } from "./options.ts";
import { Readiness } from "./readiness.ts";
import { ServerAgents } from "./server_agents.ts";
import { ServerCore } from "./server_core.ts";
import { ServerFrontends } from "./server_frontends.ts";
import { ServerNodes } from "./server_nodes.ts";
import { Shutdown } from "./shutdown.ts";

/** A server that is up. */
export interface RunningServer {
  /** Where it listens, ports of 0 resolved. */
  readonly addresses: {
    readonly frontend: string;
    readonly agents: string;
    readonly health: string;
    readonly admin: string;
    /** Of the kubelet front end, if there is one. */
    readonly kubelet?: string;
    /** Of discovery for programs on this machine, if there is any. */
    readonly discovery?: string;
  };
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /** Not ready, no new callers, then ends when idle or at its timeout. */
  shutdown(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads certificates and keys again; what runs is not disturbed. */
  reload(): void;
}

/**
 * Opens all ports.
 *
 * @throws {CredentialsError | ListenError} One sentence; nothing stays open.
 */
export async function startServer(
  options: ServerOptions,
  log: Log,
): Promise<RunningServer> {
  const server = new Server(options, log);
  try {
    return await server.open();
  } catch (error) {
    server.abandon("the server does not start");
    throw error;
  }
}

/** See the module description. */
class Server {
  readonly #core: ServerCore;
  readonly #readiness: Readiness;
  readonly #nodes: ServerNodes;
  readonly #agents: ServerAgents;
  readonly #frontends: ServerFrontends;
  readonly #shutdown: Shutdown;
  readonly #httpListeners: BoundListener[] = [];
  #kubernetes: ServerKubernetes | undefined;

  constructor(options: ServerOptions, log: Log) {
    const core = new ServerCore(
      options,
      log,
      () => this.#shutdown.loadChanged(),
    );
    this.#core = core;
    this.#shutdown = new Shutdown({
      refuseCallers: () => this.#refuseCallers(),
      load: () =>
        core.metrics.established + core.metrics.pendingDials +
        this.#agents.leaving,
      closeAll: (reason) => this.#closeAll(reason),
    }, systemTimers);
    this.#readiness = new Readiness({
      isRunning: () => this.#shutdown.isRunning,
      hasAgents: () => core.registry.isReady,
    });
    this.#nodes = new ServerNodes(core, (one) => this.#agents.admit(one));
    this.#agents = new ServerAgents(core, this.#nodes, this.#readiness);
    this.#frontends = new ServerFrontends(core, this.#readiness.methods);
  }

  async open(): Promise<RunningServer> {
    const { options, log, files, metricRegistry } = this.#core;
    // Everything is checked before anything is offered.
    this.#kubernetes = await this.#openKubernetes();
    const agentFiles = await this.#agents.openTrust(this.#kubernetes?.judges);
    const discovery = await this.#nodes.openDiscovery();
    const frontend = await this.#frontends.listen();
    const agents = await this.#agents.listen();
    const kubelet = await this.#frontends.listenKubelet(agentFiles);
    const health = this.#serve(
      options.health,
      healthHandler({
        metrics: metricRegistry,
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
        notes: () => files.notes,
        style: "server",
      }),
    );
    const admin = this.#serve(
      options.admin,
      adminHandler(metricRegistry, await this.#debugRoutes(discovery?.routes)),
    );
    this.#watchFiles();
    this.#kubernetes?.start();
    discovery?.start();
    await this.#agents.start(agents);
    const addresses = {
      frontend,
      agents,
      health,
      admin,
      ...(kubelet === undefined ? {} : { kubelet }),
      ...(discovery?.address && { discovery: discovery.address }),
    };
    this.#readiness.report();
    log.info("server started", { server: options.serverId, ...addresses });
    return this.#running(addresses);
  }

  /** Closes whatever has been opened. */
  abandon(reason: string): void {
    this.#frontends.drain(reason);
    this.#stopPorts(reason);
    void this.#nodes.stop(reason);
  }

  #running(addresses: RunningServer["addresses"]): RunningServer {
    const { options, files, authorization } = this.#core;
    return {
      addresses,
      finished: this.#shutdown.finished.finally(() => authorization.close()),
      shutdown: () => this.#shutdown.begin(options.shutdownTimeoutMs),
      stop: (reason) => this.#shutdown.now(reason),
      reload: () => {
        files.reload();
        this.#agents.reload();
        authorization.reopen();
        this.#agents.reconsider();
      },
    };
  }

  async #openKubernetes(): Promise<ServerKubernetes | undefined> {
    const { options, log, metricRegistry } = this.#core;
    const { kubernetes, serverId, agents } = options;
    if (kubernetes === undefined) return undefined;
    // Loaded when wanted: most servers know no API server.
    const { openKubernetes } = await import(
      "./kubernetes/server_kubernetes.ts"
    );
    const server = { serverId, nodeBinding: agents.nodeBinding ?? "warn" };
    return openKubernetes(kubernetes, server, log, metricRegistry);
  }

  async #debugRoutes(routes: Routes | undefined): Promise<Routes> {
    if (routes === undefined) return {};
    const { options, log } = this.#core;
    const { adminDebug: access = "open", agents } = options;
    const { stateDirectory } = agents.identity ?? {};
    return await guardDebug(routes, {
      access,
      ...(stateDirectory === undefined ? {} : { stateDirectory }),
      log,
    });
  }

  /** @returns Where it listens. */
  #serve(
    address: ListenAddress,
    handler: (request: Request) => Response,
  ): string {
    const listener = listenHttp(
      address,
      handler,
      () => this.#core.intake.reached("http_connections", "all"),
    );
    this.#httpListeners.push(listener);
    return listener.address;
  }

  #watchFiles(): void {
    const { options, files, authorization } = this.#core;
    for (const source of [authorization.source, options.config]) {
      if (source !== undefined) files.add(source);
    }
    files.start(() => this.#agents.reconsider());
  }

  // --- The end ---------------------------------------------------------------

  #refuseCallers(): void {
    this.#readiness.report();
    this.#kubernetes?.retire();
    // Whose stream ends makes the next one elsewhere, and not on this connection.
    this.#agents.drain("the server is stopping");
    this.#nodes.drain("the server is stopping");
    this.#frontends.drain("the server is stopping");
  }

  async #closeAll(reason: string): Promise<void> {
    this.#stopPorts(reason);
    await Promise.all([
      this.#kubernetes?.stop(),
      this.#nodes.stop(reason),
    ]);
  }

  #stopPorts(reason: string): void {
    this.#core.files.close();
    this.#agents.stop(reason);
    this.#frontends.stop(reason);
    for (const listener of this.#httpListeners) listener.close();
  }
}

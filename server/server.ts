/**
 * A tunnel server: opens the ports, joins the parts, ends in order.
 *
 * Reading order: `startServer`, then `Server.#open`. Every part is made here
 * and knows the others only by the interfaces it asks for.
 *
 * @module
 */

import { adminHandler, healthHandler } from "../host/http_endpoints.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenAgentPort,
  listenHttp,
} from "../host/listeners.ts";
import type { Log } from "../host/log.ts";
import { MetricRegistry } from "../host/metrics.ts";
import { registerProcessMetrics } from "../host/process_metrics.ts";
import { KeptFiles } from "../host/reload/kept_files.ts";
import { systemTimers } from "../host/system_timers.ts";
import type { CredentialFiles, Credentials } from "../host/tls/credentials.ts";
import { HealthService } from "../proto/grpc/health.ts";
import { HTTP2_ALPN, STREAMS_ALPN } from "../proto/link/hello.ts";
import { ReceiveBudget } from "../proto/streams/receive_budget.ts";
import { join } from "../proto/transfer/transfer.ts";
import { Dialer } from "./dialer.ts";
import {
  admit,
  type AgentTrust,
  openAgentTrust,
  reconsider,
} from "./identity/agent_trust.ts";
import { listenFrontend } from "./frontends/frontend_listener.ts";
import { FrontendPort } from "./frontends/frontend_port.ts";
import { ServerIntake } from "./intake.ts";
import { frontendRouter } from "./frontends/grpc_frontend.ts";
import type { KubeletPort } from "./kubelet/kubelet_port.ts";
import { callerFiles, kubeletFiles } from "./kubelet/options.ts";
import type { ServerKubernetes } from "./kubernetes/server_kubernetes.ts";
import { AgentPort } from "./links/agent_port.ts";
import type { ServerOptions } from "./options.ts";
import { Authorization } from "./policy/authorization.ts";
import { Registry } from "./registry.ts";
import { OWN_PREFIX } from "./metric_families.ts";
import { ServerMetrics } from "./server_metrics.ts";
import { ServerNodes } from "./server_nodes.ts";
import { Shutdown } from "./shutdown.ts";

/** How long a TLS handshake may take. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

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
    server.closeListeners();
    throw error;
  }
}

/** See the module description. */
class Server {
  readonly #options: ServerOptions;
  readonly #log: Log;
  readonly #listeners: BoundListener[] = [];
  readonly #metricRegistry = new MetricRegistry();
  readonly #files: KeptFiles;
  readonly #metrics = new ServerMetrics(this.#metricRegistry, systemTimers);
  readonly #health = new HealthService();
  readonly #receiveBudget = new ReceiveBudget();
  readonly #intake: ServerIntake;
  readonly #registry: Registry;
  readonly #authorization: Authorization;
  readonly #dialer: Dialer;
  readonly #nodes: ServerNodes;
  readonly #agentPort: AgentPort;
  readonly #frontendPort: FrontendPort;
  readonly #shutdown: Shutdown;
  /** Set by `open`, before anybody can connect. */
  #trust: AgentTrust | undefined;
  #kubernetes: ServerKubernetes | undefined;
  #kubelet: KubeletPort | undefined;

  constructor(options: ServerOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    this.#files = new KeptFiles({
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
      prefix: OWN_PREFIX,
    });
    this.#registry = new Registry({
      strategies: options.strategies,
      clock: systemTimers,
      random: Math.random,
    });
    this.#intake = new ServerIntake(options.intake ?? {}, {
      log,
      metrics: this.#metricRegistry,
      clock: systemTimers,
    });
    this.#metrics.watch(this.#registry);
    this.#metrics.watchBudget(this.#receiveBudget);
    registerProcessMetrics(this.#metricRegistry);
    this.#shutdown = new Shutdown({
      refuseCallers: () => this.#refuseCallers(),
      load: () => this.#metrics.established + this.#metrics.pendingDials,
      closeAll: (reason) => this.#closeAll(reason),
    }, systemTimers);
    this.#authorization = new Authorization(options.authorization ?? {}, {
      log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
    });
    this.#dialer = new Dialer({
      control: this.#authorization.control,
      registry: this.#registry,
      timers: systemTimers,
      dialTimeoutMs: options.dialTimeoutMs ?? 0,
      observer: this.#metrics.dialObserver(() => this.#shutdown.loadChanged()),
    });
    this.#nodes = this.#createNodes();
    this.#agentPort = this.#createAgentPort();
    this.#frontendPort = this.#createFrontendPort();
  }

  async open(): Promise<RunningServer> {
    const { agents, health, admin } = this.#options;
    // Everything is checked before anything is offered.
    const kubernetes = await this.#openKubernetes();
    const trust = await openAgentTrust(
      agents,
      this.#log,
      this.#metricRegistry,
      kubernetes?.judges,
      (node) => this.#authorization.grantsOf(node),
    );
    this.#trust = trust;
    const { identity } = trust;
    const agentCredentials = this.#load("agent-port", trust.files);
    const discovery = await this.#nodes.openDiscovery(
      this.#options.discovery,
    );
    const frontend = await this.#listenFrontend();
    const agentListener = await this.#listenAgents(trust, agentCredentials);
    const kubelet = await this.#openKubelet(trust);
    const healthListener = this.#serve(
      health,
      healthHandler({
        metrics: this.#metricRegistry,
        checks: [{ name: "agent-connected", problem: () => this.#notReady() }],
        notes: () => this.#files.notes,
        style: "server",
      }),
    );
    const adminListener = this.#serve(
      admin,
      adminHandler(this.#metricRegistry, discovery?.routes),
    );
    this.#watchFiles(trust);
    kubernetes?.start();
    discovery?.start();
    await identity?.noteAddress(agentListener.address);
    if (agents.allowAnonymous) this.#warnOfStrangers(agentListener.address);
    const addresses = {
      frontend: frontend.address,
      agents: agentListener.address,
      health: healthListener.address,
      admin: adminListener.address,
      ...(kubelet === undefined ? {} : { kubelet: kubelet.address }),
      ...(discovery?.address && { discovery: discovery.address }),
    };
    this.#reportHealth();
    this.#log.info("server started", {
      server: this.#options.serverId,
      ...addresses,
    });
    return {
      addresses,
      finished: this.#shutdown.finished
        .finally(() => this.#authorization.close()),
      shutdown: () => this.#shutdown.begin(this.#options.shutdownTimeoutMs),
      stop: (reason) => this.#shutdown.now(reason),
      reload: () => {
        this.#files.reload();
        void identity?.reload();
        this.#authorization.reopen();
        this.#reconsider(trust);
      },
    };
  }

  closeListeners(): void {
    this.#files.close();
    this.#trust?.identity?.close();
    this.#kubelet?.close();
    void this.#nodes.stop("the server does not start");
    for (const listener of this.#listeners.splice(0)) listener.close();
  }

  #warnOfStrangers(address: string): void {
    this.#log.warn(
      `agents need no certificate on ${address}: whoever can connect there ` +
        "may become an agent and get connections for any target" +
        (this.#trust?.identity === undefined ? "" : " but joined nodes"),
    );
  }

  // --- The ports -------------------------------------------------------------

  async #listenFrontend(): Promise<BoundListener> {
    const listener = await listenFrontend({
      listen: this.#options.frontend.listen,
      tls: this.#options.tls,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      intake: this.#intake.intake,
      load: (files) => this.#load("frontend", files),
      accept: (socket, guest) => this.#frontendPort.accept(socket, guest),
      refused: (reason) => {
        this.#metrics.callerRefused();
        this.#log.event(reason);
      },
      onProblem: (line) => this.#log.warn(line),
    });
    this.#listeners.push(listener);
    return listener;
  }

  async #listenAgents(
    { identity, named }: AgentTrust,
    credentials: Credentials,
  ): Promise<BoundListener> {
    const { agents, tls } = this.#options;
    const verifies = identity !== undefined || agents.caFile !== undefined;
    const listener = await listenAgentPort({
      ...agents.address,
      credentials,
      ...(named === undefined ? {} : {
        named: {
          name: named.name,
          credentials: this.#load("agent-port-own", named.files),
        },
      }),
      clientCertificate: verifies ? "optional" : "none",
      alpn: [STREAMS_ALPN, HTTP2_ALPN, ...agents.alpnProtocols],
      minVersion: tls.minVersion,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      intake: this.#intake.intake,
    }, {
      onConnection: (transport, guest) =>
        this.#agentPort.accept(transport, guest),
      onRefused: (error) => {
        this.#metrics.agentRefused();
        this.#log.event(error.message);
      },
      onProblem: (line) => this.#log.warn(line),
    });
    this.#listeners.push(listener);
    return listener;
  }

  #createFrontendPort(): FrontendPort {
    const { frontend, messageOctetsMax } = this.#options;
    const dial: Dialer["dial"] = (order, answer) =>
      this.#dialer.dial(order, answer);
    const observer = this.#metrics.linkObserver("client");
    return new FrontendPort({
      mode: frontend.mode,
      timers: systemTimers,
      keepaliveMs: frontend.keepaliveMs,
      receiveBudget: this.#receiveBudget,
      routerFor: (caller) =>
        frontendRouter(caller, {
          timers: systemTimers,
          dial,
          observer,
          messageOctetsMax,
          counted: (change) => this.#metrics.grpcConnections("Proxy", change),
          publicMethods: this.#health.methods,
        }),
      connect: {
        timers: systemTimers,
        grantsEarly: frontend.connectEarly200,
        dial,
        join,
        refused: (status, message) =>
          this.#log.event(`CONNECT refused with ${status}: ${message}`),
      },
      turnedAway: (remoteAddress, reason) => {
        this.#metrics.callerRefused();
        this.#log.event(`${remoteAddress}: ${reason}`);
      },
      ended: (end) => this.#intake.ended("frontends", end),
      counted: (protocol, change) => {
        if (protocol === "http1") this.#metrics.httpConnections(change);
      },
    });
  }

  #createNodes(): ServerNodes {
    return new ServerNodes({
      log: this.#log,
      metrics: this.#metrics,
      metricRegistry: this.#metricRegistry,
      receiveBudget: this.#receiveBudget,
      intake: this.#intake,
      authorization: this.#authorization,
      messageOctetsMax: this.#options.messageOctetsMax,
      letsAnonymous: this.#options.agents.allowAnonymous,
      admit: (candidate) => admit(this.#trust!, candidate),
      dial: (order, answer) => this.#dialer.dial(order, answer),
    });
  }

  #createAgentPort(): AgentPort {
    const { agents, serverId, serverCount, messageOctetsMax } = this.#options;
    const metrics = this.#metrics;
    return new AgentPort({
      serverId,
      serverCount,
      keepaliveMs: agents.keepaliveMs,
      ...(agents.firstStreamId === undefined
        ? {}
        : { firstStreamId: agents.firstStreamId }),
      receiveBudget: this.#receiveBudget,
      messageOctetsMax,
      admit: (candidate) => admit(this.#trust!, candidate),
      timers: systemTimers,
      randomness: (octets) => crypto.getRandomValues(octets),
      methodsFor: (caller) => ({
        ...this.#health.methods,
        ...this.#trust?.identity?.methods(caller),
        ...this.#nodes.methods(caller),
      }),
      authorities: () => this.#trust?.identity?.bundle,
      observer: {
        ...metrics.linkObserver("agent"),
        linked: (link) => {
          this.#registry.add(link);
          this.#nodes.announced("linked", link);
          this.#reportHealth();
          const { agentId, carrier, remoteAddress, software } = link.peer;
          this.#log.event("agent linked", {
            agent: agentId,
            carrier,
            from: remoteAddress,
            software,
          });
        },
        unlinked: (link, reason) => {
          this.#registry.remove(link);
          this.#nodes.unlinked(link);
          this.#reportHealth();
          const { agentId, remoteAddress } = link.peer;
          this.#log.event(`agent gone: ${reason}`, {
            agent: agentId,
            from: remoteAddress,
          });
        },
        changed: (link) => this.#nodes.announced("changed", link),
        refused: (remoteAddress, reason) => {
          metrics.agentRefused();
          this.#log.event(`${remoteAddress}: ${reason}`);
        },
        counted: (change) => metrics.grpcConnections("Connect", change),
        ended: (end) => this.#intake.ended("agents", end),
      },
    });
  }

  async #openKubelet(
    { files }: AgentTrust,
  ): Promise<KubeletPort | undefined> {
    const { kubelet, tls } = this.#options;
    if (kubelet === undefined) return undefined;
    // Loaded when wanted: most servers have no such port.
    const { KubeletPort } = await import("./kubelet/kubelet_port.ts");
    return this.#kubelet = new KubeletPort(kubelet, {
      log: this.#log,
      timers: systemTimers,
      metrics: this.#metricRegistry,
      tls,
      intake: this.#intake.intake,
      dial: (order, answer) => this.#dialer.dial(order, answer),
      isServed: (host) => this.#registry.serves(host),
      callers: this.#load("kubelet-port", callerFiles(kubelet, files)),
      kubelets: this.#load("kubelets", kubeletFiles(kubelet)),
      turnedAway: () => this.#metrics.callerRefused(),
    });
  }

  async #openKubernetes(): Promise<ServerKubernetes | undefined> {
    const { kubernetes, serverId, agents } = this.#options;
    if (kubernetes === undefined) return undefined;
    // Loaded when wanted: most servers know no API server.
    const { openKubernetes } = await import(
      "./kubernetes/server_kubernetes.ts"
    );
    const server = { serverId, nodeBinding: agents.nodeBinding ?? "warn" };
    return this.#kubernetes = openKubernetes(
      kubernetes,
      server,
      this.#log,
      this.#metricRegistry,
    );
  }

  #watchFiles(trust: AgentTrust): void {
    for (const source of [this.#authorization.source, this.#options.config]) {
      if (source !== undefined) this.#files.add(source);
    }
    // What a policy grants may be what a link was admitted for.
    this.#files.start(() => this.#reconsider(trust));
    trust.identity?.watch({
      onReloaded: this.#files.follow("authorities"),
      onCredentials: () => this.#files.check(),
      onAuthorities: (bundle) => this.#agentPort.announceAuthorities(bundle),
      onNode: (node) => this.#reconsider(trust, node),
    });
  }

  #reconsider(trust: AgentTrust, node?: string): void {
    const links = [...this.#registry.links, ...this.#nodes.links];
    reconsider(trust, links, node);
    this.#nodes.reconsider(node);
  }

  #serve(address: ListenAddress, handler: (request: Request) => Response) {
    const listener = listenHttp(
      address,
      handler,
      () => this.#intake.reached("http_connections", "all"),
    );
    this.#listeners.push(listener);
    return listener;
  }

  #load(kind: string, files: CredentialFiles): Credentials {
    return this.#files.credentials(kind, files);
  }

  // --- Readiness and the end -------------------------------------------------

  #notReady(): string | undefined {
    if (!this.#shutdown.isRunning) return "the server is stopping";
    return this.#registry.isReady
      ? undefined
      : "no connection to any proxy agent";
  }

  #reportHealth(): void {
    this.#health.setStatus(
      "",
      this.#notReady() === undefined ? "SERVING" : "NOT_SERVING",
    );
  }

  #refuseCallers(): void {
    this.#reportHealth();
    const [frontend] = this.#listeners;
    frontend?.close();
    this.#nodes.drain("the server is stopping");
    this.#kubelet?.close();
    this.#frontendPort.shutdown("the server is stopping");
  }

  async #closeAll(reason: string): Promise<void> {
    this.#files.close();
    this.#trust?.identity?.close();
    for (const link of [...this.#registry.links]) link.close(reason);
    this.#agentPort.shutdown(reason);
    this.#frontendPort.shutdown(reason);
    this.#kubelet?.shutdown(reason);
    for (const listener of this.#listeners.splice(1)) listener.close();
    await Promise.all([
      this.#kubernetes?.stop(),
      this.#nodes.stop(reason),
    ]);
  }
}

/**
 * A whole tunnel inside the test process: a server and its agents, over real
 * sockets and TLS, with everything that a test may want to hold in its hands.
 *
 * @module
 */

import { agentRoutes } from "../../../admin/agent/agent_routes.ts";
import { showServer } from "../../../admin/server/show_server.ts";
import type { AgentOptions } from "../../../agent/options.ts";
import { Relay } from "../../../agent/relay/relay.ts";
import { type RunningAgent, startAgent } from "../../../agent/agent.ts";
import type {
  FrontendProtocol,
  TunnelRoute,
} from "../../../client/tunnel_route.ts";
import {
  openDialer,
  type TunnelDial,
  type TunnelDialer,
} from "../../../client/tunnel_dialer.ts";
import type { CertificatePair } from "../certificates/throwaway_ca.ts";
import type { AnnouncedService } from "../../../proto/link/link_messages.ts";
import type { Identifiers } from "../../../proto/peer/identifiers.ts";
import type { Carrier } from "../../../proto/link/link.ts";
import type { FrontendMode, ServerOptions } from "../../../server/options.ts";
import { type RunningServer, startServer } from "../../../server/server.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { certificates } from "../certificates/certificates.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { CuttableLine } from "../peers/cuttable_line.ts";
import { identifiers } from "../memory/fake_link.ts";
import { ProbeTarget } from "../peers/probe_target.ts";
import { RecordedLog } from "../watch/recorded_log.ts";

export { eventually } from "../watch/patience.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 } as const;
const HOUR_MS = 3600_000;
const MIB = 1024 * 1024;

/** What a test's tunnel is like, where it is not as usual. */
export interface TunnelConfig {
  readonly frontend?: "unix" | "tcp";
  readonly mode?: FrontendMode;
  readonly connectEarly200?: boolean;
  readonly server?: Partial<ServerOptions>;
  readonly serverAgents?: Partial<ServerOptions["agents"]>;
}

/** What a test's agent is like, where it is not as usual. */
export interface AgentConfig {
  readonly agentId?: string;
  readonly carrier?: Carrier;
  readonly identifiers?: Partial<Identifiers>;
  readonly keyPair?: CertificatePair | "none";
  /** PEM of the CA that the agent trusts. */
  readonly ca?: string;
  /** Where the server is; the tunnel's own when absent. */
  readonly serverPort?: number;
  readonly dials?: Partial<AgentOptions["dials"]>;
  readonly audit?: NonNullable<AgentOptions["audit"]>;
  readonly access?: NonNullable<AgentOptions["access"]>;
  readonly drainTimeoutMs?: number;
  readonly services?: readonly AnnouncedService[];
  readonly relay?: AgentOptions["relay"];
}

/** An agent and what it logs. */
export interface TunnelAgent {
  readonly running: RunningAgent;
  readonly log: RecordedLog;
}

/** See the module description. */
export class Tunnel implements AsyncDisposable {
  readonly log = new RecordedLog();
  readonly agents: TunnelAgent[] = [];
  readonly #dialers = new Map<FrontendProtocol, TunnelDialer>();
  readonly #routes: CuttableLine[] = [];
  #running: RunningServer | undefined;
  #target: ProbeTarget | undefined;
  #files = 0;

  private constructor(private readonly folder: string) {}

  /** A tunnel without agents. */
  static async open(config: TunnelConfig = {}): Promise<Tunnel> {
    // Short: a unix socket's path has 107 bytes at most.
    const tunnel = new Tunnel(await Deno.makeTempDir({ prefix: "t-" }));
    try {
      const options = await tunnel.serverOptions(config);
      tunnel.#running = await startServer(options, tunnel.log, showServer);
      return tunnel;
    } catch (error) {
      await tunnel[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A tunnel with one agent that is linked, over a route that can be cut. */
  static async linked(
    carrier: Carrier,
    config: TunnelConfig = {},
  ): Promise<Tunnel> {
    const tunnel = await Tunnel.open(config);
    await tunnel.link({ carrier, serverPort: tunnel.newLine().port });
    return tunnel;
  }

  get server(): RunningServer {
    return this.#running!;
  }

  get agentPort(): number {
    return portOf(this.server.addresses.agents);
  }

  get socketPath(): string {
    return `${this.folder}/f.sock`;
  }

  /** What the conduits of `connect` reach. */
  get target(): ProbeTarget {
    return this.#target ??= new ProbeTarget();
  }

  /** A new file in the tunnel's folder. @returns Its path. */
  async file(text: string, mode = 0o600): Promise<string> {
    const path = `${this.folder}/${++this.#files}.pem`;
    await Deno.writeTextFile(path, text, { mode });
    return path;
  }

  /** As usual, but for what `config` says. */
  async serverOptions(config: TunnelConfig = {}): Promise<ServerOptions> {
    const { ca, server } = await certificates();
    const keyPair = await this.#keyPair(server);
    const caFile = await this.file(ca);
    return {
      serverId: "server-1",
      serverCount: 1,
      frontend: {
        mode: config.mode ?? "auto",
        keepaliveMs: HOUR_MS,
        connectEarly200: config.connectEarly200 ?? false,
        listen: config.frontend === "tcp"
          ? { kind: "tcp", address: LOOPBACK, keyPair, caFile }
          : { kind: "unix", path: this.socketPath, deleteExisting: true },
      },
      agents: {
        address: LOOPBACK,
        keyPair,
        caFile,
        allowAnonymous: false,
        alpnProtocols: [],
        keepaliveMs: HOUR_MS,
        ...config.serverAgents,
      },
      tls: { minVersion: "TLSv1.2" },
      strategies: ["default"],
      admin: LOOPBACK,
      health: LOOPBACK,
      dialTimeoutMs: 10_000,
      shutdownTimeoutMs: 10_000,
      messageBytesMax: 32 * MIB,
      ...config.server,
    };
  }

  /** As usual, but for what `config` says. */
  async agentOptions(config: AgentConfig = {}): Promise<AgentOptions> {
    const { ca, client } = await certificates();
    const { carrier, keyPair = client } = config;
    return {
      agentId: config.agentId ?? "agent-1",
      identifiers: identifiers(config.identifiers),
      server: {
        addresses: [{
          host: "127.0.0.1",
          port: config.serverPort ?? this.agentPort,
        }],
        caFile: await this.file(config.ca ?? ca),
        ...keyPair === "none" ? {} : { keyPair: await this.#keyPair(keyPair) },
        alpnProtocols: [],
        ...carrier === undefined ? {} : { carriers: [carrier] },
        links: 1,
        keepaliveMs: HOUR_MS,
      },
      sync: { intervalCapMs: 1_000, forever: false },
      dials: {
        timeoutMs: 5_000,
        allowUnix: [],
        hasBenchTarget: true,
        ...config.dials,
      },
      ...config.audit === undefined ? {} : { audit: config.audit },
      ...config.access === undefined ? {} : { access: config.access },
      ...config.services === undefined ? {} : { services: config.services },
      ...config.relay === undefined ? {} : { relay: config.relay },
      drainTimeoutMs: config.drainTimeoutMs ?? 10_000,
      health: LOOPBACK,
      admin: LOOPBACK,
      messageBytesMax: 32 * MIB,
    };
  }

  /** Starts an agent, linked or not. */
  async agent(config: AgentConfig = {}): Promise<TunnelAgent> {
    return this.startAgent(await this.agentOptions(config));
  }

  /** Starts an agent whose options a test has made. */
  startAgent(options: AgentOptions): TunnelAgent {
    const log = new RecordedLog();
    const { relay } = options;
    const running = startAgent(options, {
      log,
      proxy: {},
      show: agentRoutes,
      ...relay && { openRelay: (...parts) => new Relay(relay, ...parts) },
    });
    const agent = { running, log };
    this.agents.push(agent);
    return agent;
  }

  /** Starts an agent and waits until both ends say that it is linked. */
  async link(config: AgentConfig = {}): Promise<TunnelAgent> {
    const isLinked = this.log.next(/^agent linked$/);
    const agent = await this.agent(config);
    await Promise.all([isLinked, agent.log.until(/^linked to server$/)]);
    return agent;
  }

  /** A route to the agent port; agents take it by its port. */
  newLine(): CuttableLine {
    const route = new CuttableLine(this.agentPort);
    this.#routes.push(route);
    return route;
  }

  /** Cuts every agent off that came over a route. */
  cut(): void {
    for (const route of this.#routes) route.cut();
  }

  /** How callers get in. */
  async route(protocol: FrontendProtocol): Promise<TunnelRoute> {
    const { frontend } = this.server.addresses;
    if (frontend === this.socketPath) {
      const address = { kind: "unix", path: this.socketPath } as const;
      return { kind: "tunnel", protocol, address };
    }
    const { ca, client } = await certificates();
    const { certFile, keyFile } = await this.#keyPair(client);
    const tls = { caFile: await this.file(ca), certFile, keyFile };
    const port = portOf(frontend);
    const address = { kind: "tcp", host: "127.0.0.1", port, tls } as const;
    return { kind: "tunnel", protocol, address };
  }

  /** Dials as our own client does. */
  async dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    let dialer = this.#dialers.get(protocol);
    if (dialer === undefined) {
      dialer = openDialer(await this.route(protocol));
      this.#dialers.set(protocol, dialer);
    }
    return await dialer.dial(dial);
  }

  /** Both ends of one new conduit: the caller's and the target's. */
  async connect(
    protocol: FrontendProtocol,
    dial: Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    const { address } = this.target;
    const [conduit, target] = await Promise.all([
      this.dial(protocol, { target: { protocol: "tcp", address }, ...dial }),
      this.target.next(),
    ]);
    return { caller: new ConduitProbe(conduit), target };
  }

  /** The value of one series of the server's, such as `x_total{end="lost"}`. */
  metric(name: string): Promise<number> {
    return metricAt(this.server.addresses.health, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const dialer of this.#dialers.values()) dialer.close();
    for (const { running } of this.agents) running.stop("the test is over");
    this.#running?.stop("the test is over");
    await this.#target?.close();
    for (const route of this.#routes) route.close();
    for (const { running } of this.agents) await running.finished;
    await this.#running?.finished;
    await Deno.remove(this.folder, { recursive: true });
  }

  async #keyPair({ cert, key }: CertificatePair) {
    const [certFile, keyFile] = [await this.file(cert), await this.file(key)];
    return { certFile, keyFile };
  }
}

/** The value of one series of whoever answers at `address`; 0 if it has none. */
export async function metricAt(address: string, name: string): Promise<number> {
  const response = await fetch(`http://${address}/metrics`);
  for (const line of (await response.text()).split("\n")) {
    if (line.startsWith(`${name} `)) return Number(line.slice(name.length + 1));
  }
  return 0;
}

/** The port at the end of `host:port`. */
export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

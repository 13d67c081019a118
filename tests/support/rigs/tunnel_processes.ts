/**
 * A tunnel of processes, as users run it: for what only processes show, such as
 * signals, exit codes and file descriptors, and what happens when one takes the
 * place of another.
 *
 * @module
 */

import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { Child } from "../program/child.ts";
import { listProcFolder } from "../program/processes.ts";
import {
  commandOf,
  launchAgent,
  type Maker,
  type Protocol,
  type RunningAgent,
} from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { SteadyRequests } from "../peers/steady_requests.ts";
import { eventually } from "../watch/patience.ts";
import { type Dialing, Processes, type ServerProcess } from "./processes.ts";
import { byWorker, workersOf } from "./workers.ts";

const READY_AGENTS =
  "konnectivity_network_proxy_server_ready_backend_connections";

/** What a tunnel is to be made of. */
export interface ProcessesConfig {
  readonly server?: Maker;
  /** `none`: for later. */
  readonly agent?: Maker | "none";
  readonly mode?: Protocol | "auto";
  readonly serverFlags?: readonly string[];
  /** What takes the server's command line. */
  readonly serverProgram?: readonly string[];
  readonly agentFlags?: readonly string[];
  /** What takes the agent's. */
  readonly agentProgram?: readonly string[];
}

/** See the module description. */
export class TunnelProcesses extends Processes implements Dialing {
  readonly agents: RunningAgent[] = [];
  readonly server: ServerProcess;
  #echo: number | undefined;

  private constructor(workspace: Workspace, ...flags: readonly string[]) {
    super(workspace);
    this.server = this.addServer("", ...flags);
  }

  /** One whose test starts servers and agents, in place of each other. */
  static async open(): Promise<TunnelProcesses> {
    // What is held is let go by the test, however busy the machine is.
    const grace = "--graceful-shutdown-timeout=5m";
    return new TunnelProcesses(await Workspace.make(), "--mode=auto", grace);
  }

  /** Starts a server and an agent and waits until they are linked. */
  static async start(config: ProcessesConfig = {}): Promise<TunnelProcesses> {
    const { server = "ours", mode = "auto", serverFlags = [] } = config;
    const flags = [`--mode=${mode}`, "--v=0", ...serverFlags];
    const tunnel = new TunnelProcesses(await Workspace.make(), ...flags);
    tunnel.server.program = await commandOf(server, "server");
    tunnel.server.prefix = config.serverProgram ?? [];
    await tunnel.listening();
    const { agent = "ours", agentFlags, agentProgram } = config;
    if (agent !== "none") {
      await tunnel.addAgent(agent, agentFlags, agentProgram);
    }
    return tunnel;
  }

  get agent(): RunningAgent {
    return this.agents[0]!;
  }

  /** Its frontend. */
  get socket(): string {
    return this.server.socket;
  }

  get healthUrl(): string {
    return this.server.healthUrl;
  }

  /** Starts a server; nobody waits for it. */
  start(...flags: readonly string[]): Child {
    return this.server.run(this.server.command(...flags));
  }

  /** One that listens, and serves as soon as it has an agent. */
  async listening(...flags: readonly string[]): Promise<Child> {
    const child = this.start(...flags);
    await child.untilReady(`${this.healthUrl}/healthz`);
    return child;
  }

  /** One of two workers, to each of which an agent is linked. */
  async linkedWorkers(): Promise<{ server: Child; pids: readonly number[] }> {
    const server = this.start("--workers=2");
    const pids = await workersOf(server);
    await this.addAgents(1);
    await this.untilEachWorkerHas(1, 2);
    return { server, pids };
  }

  /** Each of so many workers has so many agents; older ones are counted together. */
  async untilEachWorkerHas(agents: number, workers: number): Promise<void> {
    const url = `${this.healthUrl}/metrics`;
    await eventually("each worker has the agents", async () => {
      const counts = await byWorker(url, READY_AGENTS);
      const all = counts.values().reduce((sum, count) => sum + count, 0);
      return all === agents * workers;
    }, 60_000);
  }

  /** Starts a further agent. @param program What takes its command line. */
  async addAgent(
    maker: Maker,
    flags: readonly string[] = [],
    program: readonly string[] = [],
  ): Promise<RunningAgent> {
    const agent = await this.launchAgentOf(maker, flags, program);
    this.agents.push(agent);
    await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    await this.server.child.untilReady(`${this.healthUrl}/readyz`);
    return agent;
  }

  async addAgents(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      await this.addAgent("ours", [`--agent-id=agent-${index}`]);
    }
  }

  /** One that nobody waits for. */
  launchAgent(...flags: readonly string[]): Promise<RunningAgent> {
    return this.launchAgentOf("ours", flags);
  }

  async launchAgentOf(
    maker: Maker,
    flags: readonly string[],
    program: readonly string[] = [],
  ): Promise<RunningAgent> {
    const { agentPort } = this.server;
    const at = { agentHost: "127.0.0.1", agentPort };
    const agent = await launchAgent(this.workspace, at, maker, flags, program);
    this.keep(agent.child);
    return agent;
  }

  /** Dials as our own client does, each time anew. */
  dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    return this.server.dial(protocol, dial);
  }

  /** Both ends of one new conduit: the caller's and the target's. */
  connect(
    protocol: FrontendProtocol,
    dial: Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    return this.connectBy(this, protocol, dial);
  }

  /** A conduit over a caller's connection of its own, to an echo. */
  async hold(protocol: FrontendProtocol): Promise<ConduitProbe> {
    this.#echo ??= this.echo();
    const target = { protocol: "tcp", address: `127.0.0.1:${this.#echo}` };
    return new ConduitProbe(await this.dial(protocol, { target }));
  }

  /** Requests to an echo, each over a connection of its own. */
  requests(protocol: FrontendProtocol, pauseMs = 2): SteadyRequests {
    return new SteadyRequests(
      async () => {
        const conduit = await this.hold(protocol);
        conduit.send("hello");
        await conduit.received(5);
        conduit.reset("asked enough");
      },
      2,
      pauseMs,
    );
  }
}

/** Those that were held to an echo go on, and are let go. */
export async function mustGoOn(
  ...held: readonly ConduitProbe[]
): Promise<void> {
  for (const one of held) {
    one.send("still");
    await one.mustReceive(5);
    one.reset("over");
  }
}

/** Open file descriptors of a process (Linux). */
export function openDescriptors(pid: number): number {
  return listProcFolder(`/proc/${pid}/fd`).length;
}

/**
 * A tunnel of processes, as users run it: for what only a process shows, such as
 * signals, exit codes and file descriptors.
 *
 * @module
 */

import { listProcFolder } from "../program/processes.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import {
  launchAgent,
  type Maker,
  ourCommand,
  type Protocol,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import type { ConduitProbe } from "../memory/conduit_probe.ts";
import { dialAt, type Dialing, Processes } from "./processes.ts";

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

  private constructor(workspace: Workspace, readonly server: RunningServer) {
    super(workspace);
    this.keep(server.child);
  }

  /** Starts a server and an agent and waits until they are linked. */
  static async start(config: ProcessesConfig = {}): Promise<TunnelProcesses> {
    const workspace = await Workspace.make();
    const server = await startServer(workspace, {
      maker: config.server ?? "ours",
      mode: config.mode ?? "auto",
      transport: "uds",
      extraFlags: config.serverFlags ?? [],
      ...config.serverProgram &&
        { program: [...config.serverProgram, ...ourCommand("server")] },
    });
    const processes = new TunnelProcesses(workspace, server);
    const { agent = "ours", agentFlags, agentProgram } = config;
    if (agent !== "none") {
      await processes.addAgent(agent, agentFlags, agentProgram);
    }
    return processes;
  }

  get agent(): RunningAgent {
    return this.agents[0]!;
  }

  /** Its frontend. */
  get socket(): string {
    const { frontend } = this.server;
    if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
    return frontend.path;
  }

  /** Starts a further agent. @param program What takes its command line. */
  async addAgent(
    maker: Maker,
    flags: readonly string[] = [],
    program: readonly string[] = [],
  ): Promise<RunningAgent> {
    const { workspace, server } = this;
    const agent = await launchAgent(workspace, server, maker, flags, program);
    this.keep(agent.child);
    this.agents.push(agent);
    await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    await server.child.untilReady(`${server.healthUrl}/readyz`);
    return agent;
  }

  /** Dials as our own client does, each time anew. */
  dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    return dialAt(this.socket, protocol, dial);
  }

  /** Both ends of one new conduit: the caller's and the target's. */
  connect(
    protocol: FrontendProtocol,
    dial: Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    return this.connectBy(this, protocol, dial);
  }
}

/** Open file descriptors of a process (Linux). */
export function openDescriptors(pid: number): number {
  return listProcFolder(`/proc/${pid}/fd`).length;
}

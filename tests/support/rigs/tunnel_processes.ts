/**
 * A tunnel of processes, as users run it: for what only a process shows, such as
 * signals, exit codes and file descriptors.
 *
 * @module
 */

import { listProcFolder } from "../program/processes.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import { type TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import {
  type Maker,
  ourCommand,
  type Protocol,
  type RunningAgent,
  type RunningServer,
  startAgent,
  startServer,
} from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { ProbeTarget } from "../peers/probe_target.ts";
import { dialAt } from "./processes.ts";

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
}

/** See the module description. */
export class TunnelProcesses implements AsyncDisposable {
  readonly target = new ProbeTarget();

  private constructor(
    readonly workspace: Workspace,
    readonly server: RunningServer,
    readonly agents: RunningAgent[],
  ) {}

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
    const processes = new TunnelProcesses(workspace, server, []);
    const { agent = "ours" } = config;
    if (agent !== "none") await processes.addAgent(agent, config.agentFlags);
    return processes;
  }

  get agent(): RunningAgent {
    return this.agents[0]!;
  }

  /** Starts a further agent. @param prefix Words before the command. */
  async addAgent(
    maker: Maker,
    flags: readonly string[] = [],
    prefix: readonly string[] = [],
  ): Promise<RunningAgent> {
    const { workspace, server } = this;
    const agent = await startAgent(workspace, server, maker, flags, prefix);
    this.agents.push(agent);
    return agent;
  }

  /** Dials as our own client does, each time anew. */
  async dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    const { frontend } = this.server;
    if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
    return await dialAt(frontend.path, protocol, dial);
  }

  /** Both ends of one new conduit: the caller's and the target's. */
  async connect(
    protocol: FrontendProtocol,
    dial: Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    const target = { protocol: "tcp", address: this.target.address };
    const [conduit, far] = await Promise.all([
      this.dial(protocol, { target, ...dial }),
      this.target.next(),
    ]);
    return { caller: new ConduitProbe(conduit), target: far };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.target.close();
    for (const agent of this.agents) await agent.child.stop("SIGKILL");
    await this.server.child.stop("SIGKILL");
    await this.workspace.remove();
  }
}

/** Open file descriptors of a process (Linux). */
export function openDescriptors(pid: number): number {
  return listProcFolder(`/proc/${pid}/fd`).length;
}

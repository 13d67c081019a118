/**
 * Servers of one place, one after the other, with agents: processes, for what
 * happens when one takes the place of another.
 *
 * @module
 */

import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import {
  launchAgent,
  type Maker,
  type RunningAgent,
} from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { SteadyRequests } from "../peers/steady_requests.ts";
import { clusterFlags, ServerProcess } from "./processes.ts";
import { ProxyRig } from "./proxy_rig.ts";

/** See the module description. */
export class ServerStage implements AsyncDisposable {
  readonly #targets = new ProxyRig();
  readonly #target = this.#targets.echo();
  readonly #agents: RunningAgent[] = [];
  readonly server: ServerProcess;

  constructor(readonly workspace: Workspace) {
    this.server = new ServerProcess(workspace, {
      flags: [
        "--mode=auto",
        `--admin-port=${freePort()}`,
        ...clusterFlags(workspace),
        "--server-port=0",
        // What is held is let go by the test, however busy the machine is.
        "--graceful-shutdown-timeout=5m",
      ],
    });
    this.server.addFlags(`--uds-name=${this.server.socket}`);
  }

  get agentPort(): number {
    return this.server.agentPort;
  }

  get healthUrl(): string {
    return this.server.healthUrl;
  }

  /** Of each server. */
  get flags(): readonly string[] {
    return this.server.flags;
  }

  start(...flags: readonly string[]): Child {
    return this.run(this.command(...flags));
  }

  command(...flags: readonly string[]): readonly string[] {
    return this.server.command(...flags);
  }

  run(command: readonly string[]): Child {
    return this.server.run(command);
  }

  readiness(): Promise<string> {
    return this.server.readiness();
  }

  async addAgents(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const agent = await this.launch(`--agent-id=agent-${index}`);
      await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    }
  }

  launch(...flags: readonly string[]): Promise<RunningAgent> {
    return this.launchOf("ours", ...flags);
  }

  async launchOf(
    maker: Maker,
    ...flags: readonly string[]
  ): Promise<RunningAgent> {
    const at = { agentHost: "127.0.0.1", agentPort: this.agentPort };
    const agent = await launchAgent(this.workspace, at, maker, flags);
    this.#agents.push(agent);
    return agent;
  }

  /** A conduit over a caller's connection of its own. */
  async connect(protocol: FrontendProtocol): Promise<ConduitProbe> {
    const target = { protocol: "tcp", address: `127.0.0.1:${this.#target}` };
    return new ConduitProbe(await this.server.dial(protocol, { target }));
  }

  requests(protocol: FrontendProtocol, pauseMs = 2): SteadyRequests {
    return new SteadyRequests(
      async () => {
        const conduit = await this.connect(protocol);
        conduit.send("hello");
        await conduit.received(5);
        conduit.reset("asked enough");
      },
      2,
      pauseMs,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#agents) await child.stop("SIGKILL");
    await this.server[Symbol.asyncDispose]();
    await this.#targets[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

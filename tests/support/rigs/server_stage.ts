/**
 * Servers of one place, one after the other, with agents: processes, for what
 * happens when one takes the place of another.
 *
 * @module
 */

import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Child } from "../program/child.ts";
import {
  launchAgent,
  type Maker,
  type RunningAgent,
} from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { SteadyRequests } from "../peers/steady_requests.ts";
import { eventually } from "../watch/patience.ts";
import { Processes, type ServerProcess } from "./processes.ts";
import { byWorker } from "./workers.ts";

const READY_AGENTS =
  "konnectivity_network_proxy_server_ready_backend_connections";

/** See the module description. */
export class ServerStage extends Processes {
  readonly #target = this.echo();
  readonly server: ServerProcess = this.addServer(
    "",
    "--mode=auto",
    // What is held is let go by the test, however busy the machine is.
    "--graceful-shutdown-timeout=5m",
  );

  static async open(): Promise<ServerStage> {
    return new ServerStage(await Workspace.make());
  }

  get agentPort(): number {
    return this.server.agentPort;
  }

  get healthUrl(): string {
    return this.server.healthUrl;
  }

  start(...flags: readonly string[]): Child {
    return this.server.run(this.server.command(...flags));
  }

  /** One that listens, and serves as soon as it has an agent. */
  async listening(...flags: readonly string[]): Promise<Child> {
    const child = this.start(...flags);
    await child.untilReady(`${this.healthUrl}/healthz`);
    return child;
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

  async addAgents(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const agent = await this.launchAgent(`--agent-id=agent-${index}`);
      await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    }
  }

  launchAgent(...flags: readonly string[]): Promise<RunningAgent> {
    return this.launchAgentOf("ours", ...flags);
  }

  async launchAgentOf(
    maker: Maker,
    ...flags: readonly string[]
  ): Promise<RunningAgent> {
    const at = { agentHost: "127.0.0.1", agentPort: this.agentPort };
    const agent = await launchAgent(this.workspace, at, maker, flags);
    this.keep(agent.child);
    return agent;
  }

  /** A conduit over a caller's connection of its own, to an echo. */
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
}

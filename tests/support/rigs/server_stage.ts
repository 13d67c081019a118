/**
 * Servers of one place, one after the other, with agents: processes, for what
 * happens when one takes the place of another.
 *
 * @module
 */

import type {
  FrontendProtocol,
  TunnelRoute,
} from "../../../client/tunnel_route.ts";
import { openDialer } from "../../../client/tunnel_dialer.ts";
import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import {
  launchAgent,
  type Maker,
  ourCommand,
  type RunningAgent,
} from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { SteadyRequests } from "../peers/steady_requests.ts";
import { ProxyRig } from "./proxy_rig.ts";

/** See the module description. */
export class ServerStage implements AsyncDisposable {
  readonly #targets = new ProxyRig();
  readonly #target = this.#targets.echo();
  readonly #children: Child[] = [];
  readonly #agents: RunningAgent[] = [];
  readonly #frontend: string;
  readonly agentPort = freePort();
  readonly healthUrl: string;
  /** Of each server. */
  readonly flags: readonly string[];

  constructor(readonly workspace: Workspace) {
    const { ca, server } = workspace.certificates;
    const healthPort = freePort();
    this.#frontend = workspace.path("front.sock");
    this.healthUrl = `http://127.0.0.1:${healthPort}`;
    this.flags = [
      "--mode=auto",
      `--agent-port=${this.agentPort}`,
      "--agent-bind-address=127.0.0.1",
      `--health-port=${healthPort}`,
      "--health-bind-address=127.0.0.1",
      `--admin-port=${freePort()}`,
      `--cluster-cert=${server.cert}`,
      `--cluster-key=${server.key}`,
      `--cluster-ca-cert=${ca}`,
      `--uds-name=${this.#frontend}`,
      "--server-port=0",
      // What is held is let go by the test, however busy the machine is.
      "--graceful-shutdown-timeout=5m",
    ];
  }

  start(...flags: string[]): Child {
    return this.run(this.command(...flags));
  }

  command(...flags: string[]): readonly string[] {
    return ourCommand("server", ...this.flags, ...flags);
  }

  run(command: readonly string[]): Child {
    const count = this.#children.length;
    const child = new Child({
      name: `server ${count}`,
      command,
      logFile: this.workspace.path(`server-${count}.log`),
    });
    this.#children.push(child);
    return child;
  }

  async addAgents(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const agent = await this.launch(`--agent-id=agent-${index}`);
      await agent.child.untilReady(`${agent.healthUrl}/readyz`);
    }
  }

  launch(...flags: string[]): Promise<RunningAgent> {
    return this.launchOf("ours", ...flags);
  }

  async launchOf(maker: Maker, ...flags: string[]): Promise<RunningAgent> {
    const at = { agentHost: "127.0.0.1", agentPort: this.agentPort };
    const agent = await launchAgent(this.workspace, at, maker, flags);
    this.#agents.push(agent);
    return agent;
  }

  async readiness(): Promise<string> {
    const answer = await fetch(`${this.healthUrl}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  }

  /** A conduit over a caller's connection of its own. */
  async connect(protocol: FrontendProtocol): Promise<ConduitProbe> {
    const address = { kind: "unix", path: this.#frontend } as const;
    const route: TunnelRoute = { kind: "tunnel", protocol, address };
    const dialer = openDialer(route);
    const target = {
      protocol: "tcp",
      address: `127.0.0.1:${this.#target}`,
    };
    try {
      return new ConduitProbe(await dialer.dial({ target }));
    } finally {
      dialer.close();
    }
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
    for (const child of this.#children) await child.stop("SIGKILL");
    await this.#targets[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

/**
 * Three servers, twenty agents on ten nodes, and something that echoes: real
 * processes, which are killed and started again at the same places.
 *
 * @module
 */

import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import type { FrontendAddress } from "../../client/tunnel_route.ts";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { arrivals } from "../../tests/support/peers/sockets.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ServerProcess } from "../../tests/support/rigs/server_process.ts";

export const SERVERS = 3;
export const AGENTS = 20;
/** Each has two agents. */
export const NODES = 10;

/** Agents that start at once: more would only wait for each other. */
const STARTED_AT_ONCE = 5;

const LOOK_MS = 20;

/** See the module description. */
export class HaStage {
  readonly servers: readonly ServerProcess[];
  readonly agents: AgentProcess[] = [];
  readonly #echo = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  constructor(workspace: Workspace) {
    this.servers = Array.from(
      { length: SERVERS },
      (_, at) =>
        new ServerProcess(workspace, `s${at + 1}`, [
          "--mode=auto",
          `--server-count=${SERVERS}`,
        ]),
    );
    const addresses = this.servers.map(({ address }) => address);
    for (let at = 0; at < AGENTS; at++) {
      this.agents.push(new AgentProcess(workspace, at, addresses));
    }
    void this.#serveEcho();
  }

  /** `HOST:PORT` of the echo. */
  get target(): string {
    return `127.0.0.1:${this.#echo.addr.port}`;
  }

  /** Starts everything; ends when each server has all agents. */
  async start(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.start()));
    for (let at = 0; at < AGENTS; at += STARTED_AT_ONCE) {
      const some = this.agents.slice(at, at + STARTED_AT_ONCE);
      for (const agent of some) agent.start();
      await Promise.all(some.map((agent) => agent.untilLinked(SERVERS)));
    }
  }

  /** Every agent has a link to every server again. */
  async untilWhole(): Promise<void> {
    await Promise.all(this.agents.map((agent) => agent.untilLinked(SERVERS)));
  }

  /** A caller that knows all servers, and begins with this one. */
  dialer(first: number): TunnelDialer {
    const [address, ...others] = this.servers.map((_, at): FrontendAddress => ({
      kind: "unix",
      path: this.servers[(first + at) % SERVERS]!.socket,
    }));
    return openDialer({
      kind: "tunnel",
      protocol: first % 2 === 0 ? "grpc" : "http-connect",
      address: address!,
      others,
    });
  }

  async #serveEcho(): Promise<void> {
    for await (const caller of arrivals(this.#echo)) {
      caller.readable.pipeTo(caller.writable).catch(() => {});
    }
  }

  close(): void {
    this.#echo.close();
  }
}

/** One agent, as it is started again and again. */
export class AgentProcess {
  readonly #command: readonly string[];
  readonly #healthUrl: string;
  readonly #name: string;
  #child: Child | undefined;

  constructor(
    private readonly workspace: Workspace,
    at: number,
    servers: readonly string[],
  ) {
    const { ca, agent } = workspace.certificates;
    const healthPort = freePort();
    this.#healthUrl = `http://127.0.0.1:${healthPort}`;
    this.#name = `agent-${at}`;
    this.#command = [
      ...ourCommand("agent"),
      ...["--v=2", `--agent-id=${this.#name}`],
      `--server=${servers.join(",")}`,
      `--agent-identifiers=host=node-${at % NODES}`,
      ...[`--ca-cert=${ca}`, `--agent-cert=${agent.cert}`],
      `--agent-key=${agent.key}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${healthPort}`,
      `--admin-server-port=${freePort()}`,
    ];
  }

  get child(): Child {
    return this.#child!;
  }

  start(): void {
    this.#child = new Child({
      name: this.#name,
      command: this.#command,
      logFile: this.workspace.path(`${this.#name}.log`),
    });
  }

  async untilLinked(servers: number): Promise<void> {
    while (await this.#linked() < servers) {
      if (this.child.hasEnded) throw new Error(await this.child.logTail());
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #linked(): Promise<number> {
    const response = await fetch(`${this.#healthUrl}/metrics`)
      .catch(() => undefined);
    const text = await response?.text() ?? "";
    const name = "konnectivity_network_proxy_agent_open_server_connections";
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  }
}

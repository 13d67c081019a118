/**
 * Servers that know of each other, as processes, and an agent that is given one
 * address: a balancer's that sends everybody to one of them.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { ourCommand } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { Balancer } from "./balancer.ts";
import { ServerProcess } from "./server_process.ts";

/** Between a server that listens and its agent; the machine may be busy. */
export const LINKED_MS = 3_000;

const PEER_TIMEOUT_MS = 2_000;

/** See the module description. */
export class MeetingServers implements AsyncDisposable {
  readonly servers: ServerProcess[] = [];
  readonly balancer = new Balancer();
  agent: Child | undefined;

  private constructor(
    readonly workspace: Workspace,
    private readonly state: readonly string[] = [
      `--state=${workspace.path("state")}`,
    ],
  ) {}

  /** @param state Flags about where servers meet; a directory unless given. */
  static async open(state?: readonly string[]): Promise<MeetingServers> {
    return new MeetingServers(await Workspace.make(), state);
  }

  /** @param flags What it knows others by. */
  add(serverId: string, flags: readonly string[]): ServerProcess {
    const server = new ServerProcess(this.workspace, serverId, [
      "--handover-socket=none",
      `--uds-name=${this.workspace.path(`${serverId}.sock`)}`,
      ...flags,
    ]);
    this.servers.push(server);
    return server;
  }

  /** They meet in one place. */
  addMeeting(serverId: string): ServerProcess {
    const server = this.add(serverId, [
      `--state-dir=${this.workspace.path(serverId)}`,
      ...this.state,
      `--peer-timeout=${PEER_TIMEOUT_MS / 1_000}s`,
    ]);
    server.addFlags(`--advertise-address=${server.address}`);
    return server;
  }

  startAgent(): void {
    const { ca, agent } = this.workspace.certificates;
    this.agent = new Child({
      name: "agent",
      command: [
        ...ourCommand("agent"),
        "--v=2",
        `--server=127.0.0.1:${this.balancer.port}`,
        `--ca-cert=${ca}`,
        `--agent-cert=${agent.cert}`,
        `--agent-key=${agent.key}`,
        "--health-server-host=127.0.0.1",
        `--health-server-port=${freePort()}`,
        `--admin-server-port=${freePort()}`,
      ],
      logFile: this.workspace.path("agent.log"),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent?.stop("SIGKILL");
    for (const server of this.servers) await server.stop("SIGKILL");
    this.balancer.close();
    await this.workspace.remove();
  }
}

/** Servers come, are killed and come back; an agent links each of them. */
export async function serversComeAndGo(rig: MeetingServers): Promise<void> {
  const [one, two, three] = ["s1", "s2", "s3"].map((id) => rig.addMeeting(id));
  await one!.start();
  await two!.start();
  rig.balancer.add(one!.agentPort);
  rig.startAgent();
  await Promise.all([one!.untilLinked(), two!.untilLinked()]);

  await three!.start();
  const tookMs = await three!.untilLinked();
  assert(tookMs <= LINKED_MS, `a server that was added: ${tookMs} ms`);

  // Who is gone without a word is forgotten, and not asked for again and again.
  await three!.stop("SIGKILL");
  const silence = new Silence(three!.agentPort);
  await new Promise((resolve) => setTimeout(resolve, 2 * PEER_TIMEOUT_MS));
  const before = silence.connections;
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assertEquals(silence.connections, before);
  silence.close();

  await three!.start();
  assert(await three!.untilLinked() <= LINKED_MS, "it is back");
}

/** Counts who connects to a port, and says nothing. */
class Silence {
  connections = 0;
  readonly #listener: Deno.TcpListener;

  constructor(port: number) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port });
    void this.#accept();
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) {
      this.connections++;
      connection.close();
    }
  }

  close(): void {
    this.#listener.close();
  }
}

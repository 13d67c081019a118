/**
 * Servers that know of each other, as processes: an agent that is given one
 * address, a balancer's that sends everybody to one of them, links them all.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../peers/child.ts";
import { freePort } from "../peers/ports.ts";
import { ourCommand } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { Balancer } from "../support/rigs/balancer.ts";
import { ServerProcess } from "../support/rigs/server_process.ts";

/** Between a server that listens and its agent; the machine may be busy. */
const LINKED_MS = 3_000;

const PEER_TIMEOUT_MS = 2_000;

class Rig implements AsyncDisposable {
  readonly servers: ServerProcess[] = [];
  readonly balancer = new Balancer();
  agent: Child | undefined;

  readonly #state: string;

  private constructor(readonly workspace: Workspace) {
    this.#state = workspace.path("state");
  }

  static async open(): Promise<Rig> {
    return new Rig(await Workspace.make());
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

  /** They meet in one directory. */
  addMeeting(serverId: string): ServerProcess {
    const server = this.add(serverId, [
      `--state-dir=${this.workspace.path(serverId)}`,
      `--state=${this.#state}`,
      `--peer-timeout=${PEER_TIMEOUT_MS / 1_000}s`,
    ]);
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

function advertised(server: ServerProcess): string {
  return `--advertise-address=${server.address}`;
}

Deno.test("an agent links servers that meet in a directory, as they come and go", async () => {
  await using rig = await Rig.open();
  const [one, two, three] = ["s1", "s2", "s3"].map((id) => rig.addMeeting(id));
  for (const server of rig.servers) server.addFlags(advertised(server));
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
});

Deno.test("an agent links servers of a list, and a restarted one at once", async () => {
  await using rig = await Rig.open();
  for (const id of ["s1", "s2", "s3"]) rig.add(id, []);
  const list = rig.servers.map(({ serverId, address }) =>
    `${serverId}=${address}`
  );
  for (const server of rig.servers) {
    server.addFlags(`--peers=${list.join(",")}`, advertised(server));
  }
  await Promise.all(rig.servers.map((server) => server.start()));
  rig.balancer.add(rig.servers[0]!.agentPort);
  rig.startAgent();
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  await rig.servers[0]!.stop("SIGKILL");
  await rig.servers[0]!.start();
  assert(await rig.servers[0]!.untilLinked() <= LINKED_MS);
});

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

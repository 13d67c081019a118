/**
 * Several server processes of one authority, and agents that link to some of
 * them only: what one server lacks, another has.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { openDialer, type TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { programWords } from "../program/program.ts";
import { type Ended, runTunnel } from "../program/run.ts";
import { ourCommand } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { ProbeTarget } from "../peers/probe_target.ts";

/** One of the servers. */
export class ForwardingServer {
  readonly agentPort = freePort();
  readonly #healthPort = freePort();
  readonly socket: string;
  #child: Child | undefined;

  /** @param program Words before the subcommand. */
  constructor(
    private readonly workspace: Workspace,
    readonly id: string,
    private readonly program: readonly string[],
  ) {
    this.socket = workspace.path(`${id}.sock`);
  }

  get child(): Child {
    return this.#child!;
  }

  /** Of its agent port. */
  get address(): string {
    return `127.0.0.1:${this.agentPort}`;
  }

  async start(flags: readonly string[]): Promise<void> {
    this.#child = new Child({
      name: `server ${this.id}`,
      command: [
        ...this.program,
        ...["server", "--v=4"],
        `--server-id=${this.id}`,
        `--agent-port=${this.agentPort}`,
        "--agent-bind-address=127.0.0.1",
        `--health-port=${this.#healthPort}`,
        "--health-bind-address=127.0.0.1",
        "--admin-port=0",
        "--handover-socket=none",
        `--uds-name=${this.socket}`,
        ...flags,
      ],
      logFile: this.workspace.path(`${this.id}.log`),
    });
    await this.#child.untilPrinted(/server started/);
  }

  /** Dials as our own client does, each time anew. */
  async dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    const address = { kind: "unix", path: this.socket } as const;
    const dialer = openDialer({ kind: "tunnel", protocol, address });
    try {
      return await dialer.dial(dial);
    } finally {
      dialer.close();
    }
  }

  /** Of all series of a family whose labels contain `labels`, the sum. */
  async metric(name: string, labels = ""): Promise<number> {
    const url = `http://127.0.0.1:${this.#healthPort}/metrics`;
    const text = await (await fetch(url)).text();
    return text.split("\n")
      .filter((line) => line.startsWith(name) && line.includes(labels))
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }
}

/** See the module description. */
export class ForwardingServers implements AsyncDisposable {
  readonly target = new ProbeTarget();
  readonly #directory: string;
  readonly #children: Child[] = [];

  private constructor(
    readonly workspace: Workspace,
    readonly servers: readonly ForwardingServer[],
    private readonly state: readonly string[] | undefined,
  ) {
    this.#directory = workspace.path("state");
  }

  /** Where a server, or a command about all of them, keeps what it has. */
  #stateFlags(name: string): readonly string[] {
    if (this.state === undefined) return [`--state-dir=${this.#directory}`];
    return [...this.state, `--state-dir=${this.#directory}-${name}`];
  }

  /**
   * Starts servers one after the other: the first makes the authority.
   *
   * @param knows For each the servers that it knows, by their places.
   * @param state Flags about what they have in common; a directory unless given.
   * @param programs Words before the subcommand, for each; ours unless given.
   */
  static async start(
    knows: readonly (readonly number[])[],
    flags: (index: number, server: ForwardingServer) => readonly string[] =
      () => ["--peer-forwarding"],
    state?: readonly string[],
    programs: readonly (readonly string[])[] = knows.map(() => programWords()),
  ): Promise<ForwardingServers> {
    const workspace = await Workspace.make();
    const servers = knows.map((_, index) =>
      new ForwardingServer(workspace, `s${index + 1}`, programs[index]!)
    );
    const rig = new ForwardingServers(workspace, servers, state);
    try {
      for (const [index, server] of servers.entries()) {
        const peers = knows[index]!.map((known) => servers[known]!)
          .map(({ id, address }) => `${id}=${address}`);
        await server.start([
          ...rig.#stateFlags(server.id),
          ...(peers.length === 0 ? [] : [`--peers=${peers.join()}`]),
          ...flags(index, server),
        ]);
      }
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Any program of ours, until the end of the test. */
  run(name: string, ...words: readonly string[]): Child {
    const logFile = this.workspace.path(`${name}.log`);
    const child = new Child({ name, command: ourCommand(...words), logFile });
    this.#children.push(child);
    return child;
  }

  /** What a program of ours prints and how it ends. */
  output(...words: readonly string[]): Promise<Ended> {
    return runTunnel(words);
  }

  /** A node of the authority. @returns Its state directory. */
  async join(node: string): Promise<string> {
    const at = `--server=${this.servers[0]!.address}`;
    const { stdout } = await this.output(
      ...["token", "create", ...this.#stateFlags("s1"), at, "--json"],
    );
    const { token } = JSON.parse(stdout);
    const state = this.workspace.path(node);
    const { code, stderr } = await this.output(
      ...["join", token, `--node=${node}`, at, `--state-dir=${state}`],
    );
    assertEquals(code, 0, stderr);
    return state;
  }

  /** An agent of a node that joins, linked to these servers alone. */
  async link(node: string, ...places: readonly number[]): Promise<Child> {
    const servers = places.map((place) => this.servers[place]!);
    const agent = this.run(
      node,
      ...["agent", `--state-dir=${await this.join(node)}`],
      `--server=${servers.map(({ address }) => address).join()}`,
      ...["--health-server-host=127.0.0.1", "--health-server-port=0"],
      "--admin-server-port=0",
    );
    const linked = new RegExp(`agent linked.*agent=${node}`);
    await Promise.all(servers.map(({ child }) => child.untilPrinted(linked)));
    return agent;
  }

  /** Both ends of a new conduit from a caller of a server. */
  async connect(
    { server = this.servers[0]!, protocol = "grpc", ...dial }:
      & { server?: ForwardingServer; protocol?: FrontendProtocol }
      & Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    const target = { protocol: "tcp", address: this.target.address };
    const [conduit, far] = await Promise.all([
      server.dial(protocol, { target, ...dial }),
      this.target.next(),
    ]);
    return { caller: new ConduitProbe(conduit), target: far };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.target.close();
    for (const child of this.#children) await child.stop("SIGKILL");
    for (const server of this.servers) await stopped(server);
    await this.workspace.remove();
  }
}

async function stopped(server: ForwardingServer): Promise<void> {
  const child: Child | undefined = server.child;
  // One that stands still ends when it goes on.
  child?.signal("SIGCONT");
  await child?.stop("SIGKILL");
}

/**
 * Several server processes of one authority, and agents that link to some of
 * them only: what one server lacks, another has.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import type { TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Child } from "../program/child.ts";
import { type Ended, runTunnel } from "../program/run.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { ProbeTarget } from "../peers/probe_target.ts";
import { NO_PORTS, Processes, ServerProcess } from "./processes.ts";

/** See the module description. */
export class ForwardingServers extends Processes {
  readonly target = new ProbeTarget();
  readonly #directory: string;

  private constructor(
    workspace: Workspace,
    private readonly state: readonly string[] | undefined,
  ) {
    super(workspace);
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
    flags: (index: number, server: ServerProcess) => readonly string[] =
      () => ["--peer-forwarding"],
    state?: readonly string[],
    programs: readonly (readonly string[])[] = [],
  ): Promise<ForwardingServers> {
    const rig = new ForwardingServers(await Workspace.make(), state);
    const { servers, workspace } = rig;
    for (const index of knows.keys()) {
      const program = programs[index];
      const server = new ServerProcess(workspace, {
        id: `s${index + 1}`,
        flags: ["--v=4", "--admin-port=0", "--handover-socket=none"],
        ...program === undefined ? {} : { program },
      });
      server.addFlags(`--uds-name=${server.socket}`);
      servers.push(server);
    }
    try {
      for (const [index, server] of servers.entries()) {
        const peers = knows[index]!.map((known) => servers[known]!)
          .map(({ serverId, address }) => `${serverId}=${address}`);
        await server.start(
          ...rig.#stateFlags(server.serverId),
          ...(peers.length === 0 ? [] : [`--peers=${peers.join()}`]),
          ...flags(index, server),
        );
      }
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
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
      ...["agent", `--state-dir=${await this.join(node)}`, ...NO_PORTS],
      `--server=${servers.map(({ address }) => address).join()}`,
    );
    const linked = `agent=${node}`;
    await Promise.all(servers.map((server) => server.untilLinked(linked)));
    return agent;
  }

  /** Both ends of a new conduit from a caller of a server. */
  async connect(
    { server = this.servers[0]!, protocol = "grpc", ...dial }:
      & { server?: ServerProcess; protocol?: FrontendProtocol }
      & Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    const target = { protocol: "tcp", address: this.target.address };
    const [conduit, far] = await Promise.all([
      server.dial(protocol, { target, ...dial }),
      this.target.next(),
    ]);
    return { caller: new ConduitProbe(conduit), target: far };
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.target.close();
    await super[Symbol.asyncDispose]();
  }
}

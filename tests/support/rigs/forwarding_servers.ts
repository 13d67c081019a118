/**
 * Several server processes of one authority, and agents that link to some of
 * them only: what one server lacks, another has.
 *
 * @module
 */

import type { TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Child } from "../program/child.ts";
import { Workspace } from "../program/workspace.ts";
import type { ConduitProbe } from "../memory/conduit_probe.ts";
import { NodeStage } from "./node_stage.ts";
import type { ServerConfig, ServerProcess } from "./processes.ts";

/** See the module description. */
export class ForwardingServers extends NodeStage {
  /**
   * Starts servers one after the other: the first makes the authority.
   *
   * @param knows For each the servers that it knows, by their places.
   * @param programs Words before their flags, for each; ours unless given.
   */
  static async start(
    knows: readonly (readonly number[])[],
    flags: (index: number, server: ServerProcess) => readonly string[] =
      () => ["--peer-forwarding"],
    programs: readonly (readonly string[])[] = [],
  ): Promise<ForwardingServers> {
    const workspace = await Workspace.make();
    const config = (index: number): ServerConfig => {
      const id = `s${index + 1}`;
      const socket = workspace.path(`${id}.sock`);
      return {
        id,
        socket,
        flags: ["--v=4", "--handover-socket=none", `--uds-name=${socket}`],
      };
    };
    const rig = new ForwardingServers(workspace, config(0));
    for (let index = 1; index < knows.length; index++) {
      rig.addSibling(config(index));
    }
    try {
      for (const [index, server] of rig.servers.entries()) {
        server.program = programs[index] ?? server.program;
        const peers = knows[index]!.map((known) => rig.servers[known]!)
          .map(({ serverId, address }) => `${serverId}=${address}`);
        await server.start(
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

  /** An agent of a node that joins, linked to these servers alone. */
  async link(node: string, ...places: readonly number[]): Promise<Child> {
    await this.join(node, this.server.address);
    const servers = places.map((place) => this.servers[place]!);
    const addresses = servers.map(({ address }) => address).join();
    const agent = this.agent(node, `--server=${addresses}`);
    const linked = `agent=${node}`;
    await Promise.all(servers.map((server) => server.untilLinked(linked)));
    return agent;
  }

  /** Both ends of a new conduit from a caller of a server. */
  connect(
    { server = this.server, protocol = "grpc", ...dial }:
      & { server?: ServerProcess; protocol?: FrontendProtocol }
      & Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    return this.connectBy(server, protocol, dial);
  }
}

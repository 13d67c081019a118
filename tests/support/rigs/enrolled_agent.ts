/**
 * Agents that join by themselves, as `tunnel agent --join` does, each with a
 * state directory of its own.
 *
 * @module
 */

import { agentRoutes } from "../../../admin/agent/agent_routes.ts";
import { startJoinedAgent } from "../../../agent/joined_agent.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";
import type { Carrier } from "../../../proto/link/link.ts";
import type { IdentityRig } from "./identity_rig.ts";
import { memoryFolder } from "../memory/memory_folder.ts";
import { RecordedLog } from "../watch/recorded_log.ts";
import type { TunnelAgent } from "./tunnel_harness.ts";

/** How an agent starts, where it is not as usual. */
export interface EnrolledConfig {
  /** Absent: only the state directory counts. */
  readonly token?: string;
  /** The rig's when absent; none: those that the node remembers. */
  readonly servers?: readonly ServerAddress[];
  readonly links?: number;
  /** Both when absent. */
  readonly carriers?: readonly Carrier[];
  /** 0, so that what is spread over time happens at once. */
  readonly random?: () => number;
}

/** A machine: its name, and what is kept on its disk. */
export class Machine implements Disposable {
  readonly stateDirectory = `${memoryFolder()}/agent`;
  readonly log = new RecordedLog();

  constructor(readonly name: string) {}

  /** Starts the machine's agent and waits until it is linked. */
  async link(
    rig: IdentityRig,
    config: EnrolledConfig = {},
  ): Promise<TunnelAgent> {
    const isLinked = this.log.next(/^linked to server$/);
    const agent = await this.start(rig, config);
    await isLinked;
    return agent;
  }

  /** Starts it, linked or not. The rig stops it. */
  async start(
    rig: IdentityRig,
    config: EnrolledConfig = {},
  ): Promise<TunnelAgent> {
    const { token, servers, links = 1, carriers, random = () => 0 } = config;
    const { identifiers: _, ...usual } = await rig.tunnel.agentOptions();
    const running = await startJoinedAgent({
      ...usual,
      agentId: "",
      identity: {
        stateDirectory: this.stateDirectory,
        ...(token === undefined ? {} : { token, node: this.name }),
      },
      server: {
        ...usual.server,
        addresses: servers ?? usual.server.addresses,
        caFile: "",
        links,
        ...(carriers === undefined ? {} : { carriers }),
      },
    }, { log: this.log, proxy: {}, random, show: agentRoutes });
    const agent = { running, log: this.log };
    rig.tunnel.agents.push(agent);
    return agent;
  }

  /** The text of one of its files. */
  read(name: string): Promise<string> {
    return Deno.readTextFile(`${this.stateDirectory}/${name}`);
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.stateDirectory.slice(0, -"/agent".length), {
      recursive: true,
    });
  }
}

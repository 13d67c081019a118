/**
 * A tunnel whose server has an identity of its own, with the stores that its
 * commands work on.
 *
 * @module
 */

import {
  type Authorities,
  loadAuthorities,
  pinOfCurrent,
} from "../../../server/identity/authorities.ts";
import { NodeStore } from "../../../server/identity/node_store.ts";
import { DirectoryStore } from "../../../neighbours/store/directory_store.ts";
import {
  type TokenRequest,
  TokenStore,
} from "../../../server/identity/token_store.ts";
import type { ServerOptions } from "../../../server/options.ts";
import { IdentityNode, type ServerPlace } from "./identity_node.ts";
import { memoryFolder } from "../memory/memory_folder.ts";
import {
  type AgentConfig,
  Tunnel,
  type TunnelAgent,
} from "./tunnel_harness.ts";

const HOUR_MS = 3600_000;
const USUAL_TOKEN: TokenRequest = {
  lifeMs: HOUR_MS,
  uses: 1,
  nodePattern: "*",
  identifiers: "",
  needsApproval: false,
  note: "",
};

/** See the module description. */
export class IdentityRig implements AsyncDisposable {
  readonly tokens: TokenStore;
  readonly nodes: NodeStore;

  protected constructor(
    readonly tunnel: Tunnel,
    readonly state: DirectoryStore,
    readonly agentOptions: ServerOptions["agents"],
  ) {
    this.tokens = new TokenStore(state);
    this.nodes = new NodeStore(state);
  }

  /**
   * @param agents How the agent port differs from the usual one.
   * @param server And the rest of the server.
   */
  static async open(
    agents: Partial<ServerOptions["agents"]> = {},
    directory: string = memoryFolder(),
    server: Partial<ServerOptions> = {},
  ): Promise<IdentityRig> {
    const parts = await IdentityRig.parts(agents, directory, server);
    return new IdentityRig(...parts);
  }

  /** What such a rig is made of. */
  protected static async parts(
    agents: Partial<ServerOptions["agents"]>,
    directory: string,
    server: Partial<ServerOptions>,
  ): Promise<[Tunnel, DirectoryStore, ServerOptions["agents"]]> {
    const options = {
      address: { hostname: "127.0.0.1", port: 0 },
      allowAnonymous: false,
      alpnProtocols: [],
      keepaliveMs: HOUR_MS,
      identity: {
        stateDirectory: directory,
        // The agents of the harness look for the address that they dial.
        serverNames: ["127.0.0.1"],
        nodeCertificateLifeMs: 24 * HOUR_MS,
      },
      ...agents,
    };
    const tunnel = await Tunnel.open({
      server: { ...server, agents: options },
    });
    return [tunnel, await DirectoryStore.open(directory), options];
  }

  /** As the files say now. */
  authorities(): Promise<Authorities> {
    return loadAuthorities(this.state);
  }

  /** The server, for nodes that trust what is trusted now. */
  async place(): Promise<ServerPlace> {
    const { bundle } = await this.authorities();
    return { port: this.tunnel.agentPort, ca: bundle };
  }

  /** A new token. */
  async token(request: Partial<TokenRequest> = {}): Promise<string> {
    const pin = pinOfCurrent(await this.authorities());
    const whole = { ...USUAL_TOKEN, ...request };
    return (await this.tokens.create(whole, pin, Date.now())).token;
  }

  /** A node that has joined. */
  async joined(
    name: string,
    request: Partial<TokenRequest> = {},
  ): Promise<IdentityNode> {
    const node = await IdentityNode.make(name);
    await node.join(await this.place(), await this.token(request));
    return node;
  }

  /** How an agent of that node starts; the test may lie in what it adds. */
  async agentConfig(
    node: IdentityNode,
    lie: AgentConfig = {},
  ): Promise<AgentConfig> {
    const { ca } = await this.place();
    return { agentId: node.name, keyPair: await node.pair(), ca, ...lie };
  }

  /** Links an agent of that node. */
  async link(node: IdentityNode, lie: AgentConfig = {}): Promise<TunnelAgent> {
    return await this.tunnel.link(await this.agentConfig(node, lie));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tunnel[Symbol.asyncDispose]();
    await Deno.remove(this.state.root, { recursive: true });
  }
}

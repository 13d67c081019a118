/**
 * A server with discovery, and nodes that joined: agents that announce, proxies
 * that follow, and routes from node to node.
 *
 * @module
 */

import { AdminClient } from "../../../admin/ask/admin_client.ts";
import { nodeRoutes } from "../../../admin/agent/agent_routes.ts";
import { showServer } from "../../../admin/server/show_server.ts";
import {
  type RunningProxy,
  startNodeProxy,
} from "../../../agent/proxy/node_proxy.ts";
import { PROXY_DEFAULTS } from "../../../services/proxy/defaults.ts";
import type { AgentOptions } from "../../../agent/options.ts";
import {
  AdsSource,
  proxyNode,
} from "../../../services/proxy/ads/ads_source.ts";
import type { Source } from "../../../services/catalog/model/source.ts";
import { tlsUpstream } from "../../../net/channel/server_upstream.ts";
import type { NodeRoute } from "../../../client/tunnel_route.ts";
import {
  openDialer,
  type TunnelDial,
  type TunnelDialer,
} from "../../../client/tunnel_dialer.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { Credentials } from "../../../net/tls/trust/credentials.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import type { AnnouncedService } from "../../../proto/link/link_messages.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { ServerOptions } from "../../../server/options.ts";
import { type RunningServer, startServer } from "../../../server/server.ts";
import { freePort } from "../program/ports.ts";
import type { IdentityNode } from "./identity_node.ts";
import { IdentityRig } from "./identity_rig.ts";
import { memoryFolder } from "../memory/memory_folder.ts";
import { RecordedLog } from "../watch/recorded_log.ts";

/** What a test's server is like, where it is not as usual. */
export interface NodeRigConfig {
  readonly sources?: readonly Source[];
  readonly server?: Partial<ServerOptions>;
  readonly agents?: Partial<ServerOptions["agents"]>;
}

/** `NAME=127.0.0.1:PORT`, or as is said. */
export function announced(
  name: string,
  targetPort: number,
  change: Partial<AnnouncedService> = {},
): AnnouncedService {
  return {
    name,
    namespace: "",
    port: 80,
    protocol: "tcp",
    appProtocol: "",
    host: "127.0.0.1",
    targetPort,
    ...change,
  };
}

const DISCOVERY = {
  sources: [],
  windowMinMs: 50,
  windowMaxMs: 1_000,
  settleMs: 0,
} as const;

/** A proxy on a node. */
export interface NodeProxy {
  readonly log: RecordedLog;
  readonly running: RunningProxy;
  /** Resolves when a port of a service is served. @returns Where. */
  served(key: string): Promise<number>;
}

/** See the module description. */
export class NodeRig extends IdentityRig {
  readonly #dialers: TunnelDialer[] = [];
  readonly #proxies: RunningProxy[] = [];
  #restarted: RunningServer | undefined;

  static async discovering(config: NodeRigConfig = {}): Promise<NodeRig> {
    // A server that is started again must find its port free.
    const address = { hostname: "127.0.0.1", port: freePort() };
    const agents = { address, ...config.agents };
    const parts = await IdentityRig.parts(agents, memoryFolder(), {
      discovery: { ...DISCOVERY, sources: config.sources ?? [] },
      ...config.server,
    });
    return new NodeRig(...parts);
  }

  /** What the server's admin API answers at a path, as data. */
  async admin(path: string): Promise<unknown> {
    const socket = `${this.state.root}/admin.sock`;
    return await new AdminClient("server", { kind: "unix", path: socket }).get(
      path,
    );
  }

  /** Ends the server, and has another one like it at the same place. */
  async restart(
    meanwhile: () => Promise<void> = () => Promise.resolve(),
  ): Promise<RunningServer> {
    const { tunnel } = this;
    const { server, agentPort } = tunnel;
    server.stop("the server burns");
    await server.finished;
    await meanwhile();
    const options = await tunnel.serverOptions({
      server: {
        agents: {
          ...this.agentOptions,
          address: { hostname: "127.0.0.1", port: agentPort },
        },
        discovery: DISCOVERY,
      },
    });
    return this.#restarted = await startServer(options, tunnel.log, showServer);
  }

  /** How an agent of a node starts. */
  async optionsOf(node: IdentityNode): Promise<AgentOptions> {
    return await this.tunnel.agentOptions(await this.agentConfig(node));
  }

  /** From a node into the tunnel. */
  async route(node: IdentityNode): Promise<NodeRoute> {
    const { tunnel } = this;
    const { cert, key } = await node.pair();
    return {
      kind: "node",
      addresses: [{ host: "127.0.0.1", port: tunnel.agentPort }],
      files: {
        ca: await tunnel.file(node.authorities),
        cert: await tunnel.file(cert),
        key: await tunnel.file(key),
      },
      serverName: TUNNEL_SERVER_NAME,
      proxyEnv: {},
    };
  }

  /** Dials as a node. */
  async dialer(
    node: IdentityNode,
  ): Promise<(address: string, agent?: string) => Promise<Conduit>> {
    const dialer = openDialer(await this.route(node));
    this.#dialers.push(dialer);
    return (address, agent) => {
      const target = { protocol: "tcp", address };
      const dial: TunnelDial = {
        target,
        ...(agent === undefined ? {} : { node: agent }),
      };
      return dialer.dial(dial);
    };
  }

  /** A proxy on `node` that follows discovery. */
  async proxy(node: IdentityNode): Promise<NodeProxy> {
    const log = new RecordedLog();
    const route = await this.route(node);
    const { files, serverName, addresses, proxyEnv } = route;
    const running = startNodeProxy(
      {
        ...PROXY_DEFAULTS,
        addresses: { kind: "anywhere", host: "127.0.0.1" },
        route,
        sources: [
          new AdsSource({
            upstream: tlsUpstream({
              addresses,
              credentials: () => Credentials.load(files).current,
              serverName: serverName!,
              proxyEnv: proxyEnv ?? {},
            }),
            mode: "delta",
            node: proxyNode(`${node.name}/proxy`, ""),
            timers: systemTimers,
            random: () => 0,
          }),
        ],
        admin: { hostname: "127.0.0.1", port: 0 },
        drainTimeoutMs: 0,
      },
      log,
      nodeRoutes,
    );
    this.#proxies.push(running);
    const served = async (key: string) => {
      const line = new RegExp(`^${key} is served on `);
      const { message } = await log.until(line);
      return Number(/:(\d+)$/.exec(message)![1]);
    };
    return { log, running, served };
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const dialer of this.#dialers) dialer.close();
    for (const proxy of this.#proxies) proxy.stop("the test is over");
    for (const proxy of this.#proxies) await proxy.finished;
    this.#restarted?.stop("the test is over");
    // It writes its last words into the folder that goes with the identity.
    await this.#restarted?.finished;
    await super[Symbol.asyncDispose]();
  }
}

/**
 * Tunnels with frontends: ours, Konnectivity's, and one end of each.
 *
 * @module
 */

import {
  type Frontend,
  type Maker,
  startAgent,
  startServer,
  stopTunnel,
} from "../../peers/tunnel.ts";
import type { Workspace } from "../../peers/workspace.ts";
import type { Site, Tunnel, Wish } from "./site.ts";

/** @throws {TypeError} For the road `port`, which neither has by itself. */
export async function startWithFrontend(
  site: Site,
  wish: Wish,
  serverMaker: Maker,
  agentMaker: Maker,
): Promise<Tunnel> {
  const { road } = wish;
  if (road === "port") throw new TypeError(`${serverMaker} forwards no port`);
  const server = await startServer(site.workspace, {
    maker: serverMaker,
    mode: road === "grpc-uds" ? "grpc" : "http-connect",
    transport: road === "connect-tls" ? "tcp" : "uds",
    prefix: site.serverSide,
    agentHost: site.serverHost,
    extraFlags: wish.serverFlags ?? [],
  });
  const agent = await startAgent(
    site.workspace,
    server,
    agentMaker,
    wish.agentFlags,
    site.agentSide,
  );
  const { flags, words } = wayIn(server.frontend, road, site.workspace);
  return {
    flags: [...flags, `-to=${site.target}`],
    generator: road === "grpc-uds" ? "grpcgen" : "loadgen",
    road: words,
    pieces: [server.child, agent.child],
    stop: () => stopTunnel(server, agent),
  };
}

function wayIn(
  frontend: Frontend,
  road: Wish["road"],
  workspace: Workspace,
): { readonly flags: readonly string[]; readonly words: string } {
  if (frontend.transport === "tcp") {
    const { ca, client } = workspace.certificates;
    return {
      flags: [
        `-via=localhost:${frontend.port}`,
        `-tls=${ca},${client.cert},${client.key}`,
      ],
      words: "CONNECT over mutual TLS",
    };
  }
  return {
    flags: [`-via=unix:${frontend.path}`],
    words: road === "grpc-uds"
      ? "gRPC on a unix socket"
      : "CONNECT on a unix socket",
  };
}

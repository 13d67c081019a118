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
} from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { Site, SiteConfig, Tunnel } from "./site.ts";

/** @throws {TypeError} For the route `port`, which neither has by itself. */
export async function startWithFrontend(
  site: Site,
  config: SiteConfig,
  serverMaker: Maker,
  agentMaker: Maker,
): Promise<Tunnel> {
  const { route } = config;
  if (route === "port") throw new TypeError(`${serverMaker} forwards no port`);
  const server = await startServer(site.workspace, {
    maker: serverMaker,
    mode: route === "grpc-uds" ? "grpc" : "http-connect",
    transport: route === "connect-tls" ? "tcp" : "uds",
    prefix: site.serverSide,
    agentHost: site.serverHost,
    extraFlags: config.serverFlags ?? [],
  });
  const agent = await startAgent(
    site.workspace,
    server,
    agentMaker,
    config.agentFlags,
    site.agentSide,
  );
  const { flags, words } = wayIn(server.frontend, route, site.workspace);
  return {
    flags: [...flags, `-to=${site.target}`],
    generator: route === "grpc-uds" ? "grpcgen" : "loadgen",
    route: words,
    pieces: [server.child, agent.child],
    stop: () => stopTunnel(server, agent),
  };
}

function wayIn(
  frontend: Frontend,
  route: SiteConfig["route"],
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
    words: route === "grpc-uds"
      ? "gRPC on a unix socket"
      : "CONNECT on a unix socket",
  };
}

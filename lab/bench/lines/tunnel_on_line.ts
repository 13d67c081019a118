/**
 * Any contender's tunnel over a {@linkcode Line}: the server and the generator
 * at one end, the agent and the target at the other.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../peers/peers.ts";
import { ourCommand } from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { ContenderName } from "../metric.ts";
import type { Site, Tunnel } from "../tunnels/site.ts";
import { startTunnel } from "../tunnels/start_tunnel.ts";
import { AGENT_HOST, type Line, SERVER_HOST } from "./line.ts";

const TARGET = `${AGENT_HOST}:7000`;
const FORWARDED = `${SERVER_HOST}:7001`;

/** What the generator is told, to get past the tunnel. */
export const DIRECT_WAY: readonly string[] = [`-addr=${TARGET}`];

/**
 * How the generator enters our tunnel: CONNECT on a unix socket, or a port of
 * `tunnel forward` (gRPC on that socket). The others have one way each.
 */
export type Entrance = "connect" | "forward";

export interface OnLineConfig {
  readonly entrance: Entrance;
  /** For our programs alone. */
  readonly serverFlags: readonly string[];
  readonly agentFlags: readonly string[];
  /** Links that our agent is to have before anybody dials. */
  readonly links: number;
}

/** A tunnel that is open, and the target that it leads to. */
export interface TunnelOnLine {
  /** What the generator is told, to get through. */
  readonly way: readonly string[];
  /** None of them may end before {@linkcode TunnelOnLine.stop}. */
  readonly pieces: readonly Child[];
  stop(): Promise<void>;
}

/** Starts everything and waits until a request was answered. */
export async function startOnLine(
  name: ContenderName,
  line: Line,
  workspace: Workspace,
  config: OnLineConfig,
): Promise<TunnelOnLine> {
  const target = new Child({
    name: "target",
    command: [...line.prefix("agent"), await findPeer("loadgen"), "target"]
      .concat(TARGET),
    logFile: workspace.path("target.log"),
  });
  const pieces = [target];
  const stop = async () => {
    // By force: over a line that is going away, and with downloads that nobody
    // reads any more, a polite end would take its time-outs.
    await Promise.all(pieces.map((piece) => piece.stop("SIGKILL")));
  };
  try {
    const site: Site = {
      workspace,
      target: TARGET,
      serverHost: SERVER_HOST,
      serverSide: line.prefix("server"),
      agentSide: line.prefix("agent"),
    };
    const tunnel = await start(name, site, config);
    pieces.push(...tunnel.pieces);
    if (name !== "ours") return { way: tunnel.flags, pieces, stop };
    await line.untilConnected(config.links);
    if (config.entrance === "connect") {
      return { way: tunnel.flags, pieces, stop };
    }
    pieces.push(await startForward(site, tunnel));
    return { way: [`-addr=${FORWARDED}`], pieces, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function start(
  name: ContenderName,
  site: Site,
  { entrance, serverFlags, agentFlags }: OnLineConfig,
): Promise<Tunnel> {
  if (name !== "ours") return startTunnel(name, site);
  const route = entrance === "connect" ? "connect-uds" : "grpc-uds";
  return startTunnel(name, site, { route, serverFlags, agentFlags });
}

async function startForward(site: Site, tunnel: Tunnel): Promise<Child> {
  const via = tunnel.flags.find((flag) => flag.startsWith("-via="));
  if (via === undefined) throw new TypeError("the tunnel has no frontend");
  const child = new Child({
    name: "forward",
    command: [
      ...site.serverSide,
      ...ourCommand("forward", `${FORWARDED}:${TARGET}`),
      `--server=${via.slice("-via=".length)}`,
    ],
    logFile: site.workspace.path("forward.log"),
  });
  await child.untilPrinted(/->/);
  return child;
}

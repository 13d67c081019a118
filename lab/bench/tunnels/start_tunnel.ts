/**
 * Starts any contender's tunnel, anywhere, and waits until it carries: ours,
 * Konnectivity's, one end of each, forwarders of others, or no tunnel at all.
 *
 * @module
 */

import { FileProxy } from "../../peers/service_proxy.ts";
import { Child } from "../../../tests/support/program/child.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  type Maker,
  ourCommand,
  startAgent,
  startServer,
  stopTunnel,
} from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import {
  findPeer,
  type PeerName,
} from "../../../tests/support/program/peers.ts";
import { generate, SpoiledRunError } from "../generator.ts";
import type { ContenderName, Route } from "../metric.ts";
import { findRathole } from "../../../tests/support/program/peer_packages.ts";
import {
  forwarded,
  startFrp,
  startNginx,
  startNginxHop,
  startRathole,
} from "./forwarders.ts";

/**
 * Where the pieces of a tunnel run: everything on loopback, or each end in a
 * network namespace of its own.
 */
export interface Site {
  readonly workspace: Workspace;
  /** What the agent dials: `host:port` of the running target. */
  readonly target: string;
  /** Where the server listens for its agent, an IPv4 address. */
  readonly serverHost: string;
  /** Words before the server's and the generator's commands. */
  readonly serverSide: readonly string[];
  /** Words before the agent's command, such as `ip netns exec nsB`. */
  readonly agentSide: readonly string[];
}

/** Everything on this machine's loopback. */
export function loopback(workspace: Workspace, target: string): Site {
  const serverHost = "127.0.0.1";
  return { workspace, target, serverHost, serverSide: [], agentSide: [] };
}

/** What a metric may ask of a tunnel; not every peer can do all of it. */
export interface SiteConfig {
  readonly route: Route;
  /** For our server or agent, or Konnectivity's. */
  readonly serverFlags?: readonly string[];
  readonly agentFlags?: readonly string[];
  /** Of a forwarded port; `tcp` if not given. */
  readonly protocol?: "tcp" | "udp";
  /** Of a proxy, `ip:port` each; that of the site if not given. */
  readonly targets?: readonly string[];
}

/** A tunnel that has carried a first request. */
export interface Tunnel {
  /** Of the generator: how it reaches the target. */
  readonly flags: readonly string[];
  /** Which of the two generators knows this route. */
  readonly generator: "loadgen" | "grpcgen";
  /** Its processes, server first; they may have children. */
  readonly pieces: readonly Child[];
  stop(): Promise<void>;
}

/** How a contender is started, and what has to be found or built before. */
interface Kind {
  start(site: Site, config: SiteConfig): Promise<Tunnel>;
  readonly needs?: readonly PeerName[];
}

/** Nothing asks for it, since no metric of tunnels is for discovery servers. */
const REFERENCE: Kind = {
  start: () =>
    Promise.reject(new TypeError("a discovery server carries nothing")),
  needs: ["xds-gcp", "xds-adsload"],
};

const OURS = withFrontend("ours", "ours");

const KINDS: Readonly<Record<ContenderName, Kind>> = {
  "ours": {
    start: (site, config) =>
      config.route === "forward"
        ? startForward(site, config)
        : config.route === "proxy"
        ? startProxy(site, config)
        : OURS.start(site, config),
  },
  "ours-server": withFrontend("ours", "konnectivity"),
  "ours-agent": withFrontend("konnectivity", "ours"),
  "konnectivity": withFrontend("konnectivity", "konnectivity"),
  "frp": { start: startFrp, needs: ["frps", "frpc"] },
  "rathole": { start: startRathole },
  "nginx": {
    start: (site, config) =>
      config.route === "proxy"
        ? startNginxProxy(site, config)
        : startNginx(site),
  },
  "direct": { start: ({ target }) => Promise.resolve(forwarded(target, [])) },
  "gcp-linear": REFERENCE,
  "gcp-snapshot": REFERENCE,
};

function withFrontend(serverMaker: Maker, agentMaker: Maker): Kind {
  return {
    needs: ["konnectivity-server", "konnectivity-agent"],
    async start(site, { route, serverFlags = [], agentFlags = [] }) {
      const { workspace, serverSide, agentSide, serverHost } = site;
      if (["forward", "port", "proxy"].includes(route)) {
        throw new TypeError(`${serverMaker} has no ${route}`);
      }
      const server = await startServer(workspace, {
        maker: serverMaker,
        mode: route === "grpc-uds" ? "grpc" : "http-connect",
        transport: route === "connect-tls" ? "tcp" : "uds",
        prefix: serverSide,
        agentHost: serverHost,
        extraFlags: serverFlags,
      });
      const agent = await startAgent(
        ...[workspace, server, agentMaker, agentFlags, agentSide] as const,
      );
      const { ca, client } = workspace.certificates;
      const { frontend } = server;
      const way = frontend.transport === "tcp"
        ? [
          `-via=localhost:${frontend.port}`,
          `-tls=${ca},${client.cert},${client.key}`,
        ]
        : [`-via=unix:${frontend.path}`];
      return {
        flags: [...way, `-to=${site.target}`],
        generator: route === "grpc-uds" ? "grpcgen" : "loadgen",
        pieces: [server.child, agent.child],
        stop: () => stopTunnel(server, agent),
      };
    },
  };
}

/** Our tunnel, and a port that leads through it. */
async function startForward(
  site: Site,
  { protocol, ...config }: SiteConfig,
): Promise<Tunnel> {
  const tunnel = await OURS.start(site, { ...config, route: "grpc-uds" });
  const address = `${site.serverHost}:${freePort()}`;
  const via = tunnel.flags.find((flag) => flag.startsWith("-via="))!;
  const words = protocol === "udp" ? ["--udp"] : [];
  const forward = new Child({
    name: "forward",
    command: [
      ...site.serverSide,
      ...ourCommand("forward", ...words, `${address}:${site.target}`),
      `--server=${via.slice("-via=".length)}`,
    ],
    logFile: site.workspace.path("forward.log"),
  });
  await forward.untilPrinted(/->/);
  return {
    ...forwarded(address, [...tunnel.pieces, forward]),
    async stop() {
      await forward.stop("SIGKILL");
      await tunnel.stop();
    },
  };
}

async function startProxy(
  { workspace, target }: Site,
  { targets: endpoints = [target] }: SiteConfig,
): Promise<Tunnel> {
  const listen = freePort();
  const services = [{ name: "bench", listen, endpoints }];
  const { child } = await FileProxy.serving(workspace, services);
  return forwarded(`127.0.0.1:${listen}`, [child]);
}

async function startNginxProxy(
  { workspace, target }: Site,
  { targets = [target] }: SiteConfig,
): Promise<Tunnel> {
  const listen = `127.0.0.1:${freePort()}`;
  return forwarded(listen, [
    await startNginxHop(workspace, { listen, targets }),
  ]);
}

/**
 * Finds, builds or fetches what `name` needs, so that nothing of that happens
 * while others are measured.
 *
 * @throws {PeerMissingError} When something is missing and cannot be made.
 */
export async function preparePrograms(name: ContenderName): Promise<void> {
  await Promise.all((KINDS[name].needs ?? []).map(findPeer));
  if (name === "nginx") await findDebianProgram(name);
  if (name === "rathole") await findRathole();
}

/**
 * A tunnel of `name` at `site`, after its first answered request.
 *
 * @throws {PeerMissingError} When its programs are missing.
 * @throws {SpoiledRunError} When it does not come to carry in 30 s.
 */
export async function startTunnel(
  name: ContenderName,
  site: Site,
  config: SiteConfig = { route: "connect-uds" },
): Promise<Tunnel> {
  const tunnel = await KINDS[name].start(site, config);
  // Datagrams may be lost, so whoever forwards them says when it does.
  if (config.protocol === "udp") return tunnel;
  try {
    await generate({
      workspace: site.workspace,
      program: tunnel.generator,
      prefix: site.serverSide,
      flags: ["-mode=probe", "-d=30s", ...tunnel.flags],
      pieces: tunnel.pieces,
    });
  } catch (error) {
    const logs = await Promise.all(
      tunnel.pieces.map(async (each) =>
        `${each.name}: ${await each.logTail()}`
      ),
    );
    await tunnel.stop();
    throw new SpoiledRunError(`it does not carry: ${logs.join(" · ")}`, {
      cause: error,
    });
  }
  return tunnel;
}

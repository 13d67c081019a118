/**
 * What h2spec is pointed at. It can dial TCP only and has no client
 * certificate, so each arrangement ends in a plain TCP port on loopback.
 *
 * @module
 */

import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import {
  launchAgent,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import {
  connectMutualTls,
  connectUnix,
  openAgentPort,
  openBridge,
} from "./bridge.ts";

export interface Arrangement {
  readonly port: number;
  /** For h2spec, besides the usual ones. */
  readonly flags?: readonly string[];
  stop(): Promise<void>;
}

/**
 * h2spec makes a HEADERS frame "too large" with five headers of this length,
 * in letters of 7 bits. Its default of 4,000 is too large only for who allows
 * no frames over 16 KiB.
 */
const LARGE_FRAMES = [
  `--max-header-length=${Math.ceil(LARGE_FRAME_SIZE / 5 * 8 / 7) + 100}`,
];

const AGENTS = 4;

/** Of whom a socket and a port of agents are looked at. */
const SERVER = { maker: "ours", mode: "grpc", transport: "uds" } as const;

export const ARRANGEMENTS: Readonly<
  Record<string, (workspace: Workspace) => Promise<Arrangement>>
> = {
  /** Where frontends and where Go agents connect. */
  "server-frontend": serverFrontend,
  "server-frontend-tls": serverFrontendTls,
  "server-agent-port": serverAgentPort,
  /** The agent, which serves HTTP/2 on the link that it dials. */
  "agent-link": agentLink,
};

async function serverFrontend(workspace: Workspace): Promise<Arrangement> {
  const server = await startServer(workspace, SERVER);
  const { frontend } = server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  return bridged(server, () => connectUnix(frontend.path));
}

async function serverFrontendTls(workspace: Workspace): Promise<Arrangement> {
  const { ca, client } = workspace.certificates;
  const server = await startServer(workspace, {
    ...{ maker: "ours", mode: "auto", transport: "tcp" },
  });
  const { frontend } = server;
  if (frontend.transport !== "tcp") throw new TypeError("wanted a port");
  const files = { ca, ...client };
  return bridged(server, () => connectMutualTls(frontend.port, files));
}

async function serverAgentPort(workspace: Workspace): Promise<Arrangement> {
  const { ca, agent } = workspace.certificates;
  const server = await startServer(workspace, SERVER);
  const files = { ca, ...agent };
  return bridged(server, () => connectMutualTls(server.agentPort, files));
}

function bridged(
  { child }: RunningServer,
  connect: Parameters<typeof openBridge>[0],
): Arrangement {
  const bridge = openBridge(connect);
  return {
    port: bridge.port,
    async stop() {
      bridge.close();
      await child.stop();
    },
  };
}

async function agentLink(workspace: Workspace): Promise<Arrangement> {
  const { ca, server } = workspace.certificates;
  const agentPort = await openAgentPort({ ca, ...server });
  const at = { agentHost: "127.0.0.1", agentPort: agentPort.port };
  // Each case costs an agent its link and some wait before the next one.
  const quick = ["--sync-interval=10ms", "--sync-interval-cap=50ms"];
  const agents = await Promise.all(
    Array.from(
      { length: AGENTS },
      () => launchAgent(workspace, at, "ours", quick),
    ),
  );
  const bridge = openBridge(() => agentPort.take());
  return {
    port: bridge.port,
    flags: LARGE_FRAMES,
    async stop() {
      bridge.close();
      agentPort.close();
      await Promise.all(agents.map(({ child }) => child.stop("SIGKILL")));
    },
  };
}

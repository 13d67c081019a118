/**
 * What h2spec is pointed at. It can dial TCP only and has no client
 * certificate, so each arrangement ends in a plain TCP port on loopback.
 *
 * @module
 */

import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import { Child } from "../../tests/support/program/child.ts";
import {
  ourCommand,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import { freePort } from "../../tests/support/program/ports.ts";
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

const ENGINE = new URL("./h2spec_server.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

export const ARRANGEMENTS: Readonly<
  Record<string, (workspace: Workspace) => Promise<Arrangement>>
> = {
  /** The engine alone, as a frontend's and as an agent's link has it. */
  "engine-frontend": (workspace) => startEngine(workspace, "frontend"),
  "engine-agent": (workspace) => startEngine(workspace, "agent"),
  /** The product, where frontends and where Go agents connect. */
  "server-frontend": serverFrontend,
  "server-frontend-tls": serverFrontendTls,
  "server-agent-port": serverAgentPort,
  /** The product's agent, which serves HTTP/2 on the link that it dials. */
  "agent-link": agentLink,
};

async function startEngine(
  workspace: Workspace,
  role: string,
): Promise<Arrangement> {
  const child = new Child({
    name: `engine as ${role}`,
    command: [
      ...[Deno.execPath(), "run", "--quiet", "--no-prompt"],
      ...["--allow-net=127.0.0.1", `--config=${CONFIG}`, ENGINE, role],
    ],
    logFile: workspace.path(`engine-${role}.log`),
  });
  // The server prints the port that the system has given it.
  const [, port] = await child.untilPrinted(/(?:^|[: ])(\d{4,5})\s*$/m);
  const flags = role === "agent" ? LARGE_FRAMES : [];
  return { port: Number(port), flags, stop: () => child.stop() };
}

async function serverFrontend(workspace: Workspace): Promise<Arrangement> {
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "grpc",
    transport: "uds",
  });
  const { frontend } = server;
  if (frontend.transport !== "uds") throw new TypeError("wanted a socket");
  return bridged(server, () => connectUnix(frontend.path));
}

async function serverFrontendTls(workspace: Workspace): Promise<Arrangement> {
  const { ca, client } = workspace.certificates;
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "auto",
    transport: "tcp",
  });
  const { frontend } = server;
  if (frontend.transport !== "tcp") throw new TypeError("wanted a port");
  const files = { ca, ...client };
  return bridged(server, () => connectMutualTls(frontend.port, files));
}

async function serverAgentPort(workspace: Workspace): Promise<Arrangement> {
  const { ca, agent } = workspace.certificates;
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "grpc",
    transport: "uds",
  });
  const files = { ca, ...agent };
  return bridged(server, () => connectMutualTls(server.agentPort, files));
}

function bridged(
  server: RunningServer,
  connect: Parameters<typeof openBridge>[0],
): Arrangement {
  const bridge = openBridge(connect);
  return {
    port: bridge.port,
    async stop() {
      bridge.close();
      await server.child.stop();
    },
  };
}

async function agentLink(workspace: Workspace): Promise<Arrangement> {
  const { ca, server, agent } = workspace.certificates;
  const agentPort = await openAgentPort({ ca, ...server });
  // Each case costs an agent its link and some wait before the next one.
  const agents = Array.from({ length: AGENTS }, () =>
    new Child({
      name: "our agent",
      command: [
        ...ourCommand("agent"),
        "--proxy-server-host=127.0.0.1",
        `--proxy-server-port=${agentPort.port}`,
        ...[`--ca-cert=${ca}`, `--agent-cert=${agent.cert}`],
        ...[`--agent-key=${agent.key}`, "--sync-interval=10ms"],
        ...["--sync-interval-cap=50ms", `--health-server-port=${freePort()}`],
        `--admin-server-port=${freePort()}`,
      ],
      logFile: workspace.path("agent.log"),
    }));
  const bridge = openBridge(() => agentPort.take());
  return {
    port: bridge.port,
    flags: LARGE_FRAMES,
    async stop() {
      bridge.close();
      agentPort.close();
      await Promise.all(agents.map((child) => child.stop("SIGKILL")));
    },
  };
}

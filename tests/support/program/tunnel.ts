/**
 * Starts a tunnel server or agent, ours or Konnectivity's: both take the same
 * flags, so a test names the maker and nothing else changes.
 *
 * @module
 */

import { olderProgram } from "./older_program.ts";
import { programWords } from "./program.ts";
import { Child } from "./child.ts";
import { findPeer } from "./peers.ts";
import { freePort } from "./ports.ts";
import type { Workspace } from "./workspace.ts";

/** `older` is ours, too: a version of it that nobody has upgraded. */
export type Maker = "ours" | "older" | "konnectivity";

export type Protocol = "grpc" | "http-connect";

/** Where a frontend listens. */
export type Frontend =
  | { readonly transport: "uds"; readonly path: string }
  | { readonly transport: "tcp"; readonly host: string; readonly port: number };

export interface ServerOptions {
  readonly maker: Maker;
  /** `auto` is ours alone: both protocols on one frontend. */
  readonly mode: Protocol | "auto";
  readonly transport: "uds" | "tcp";
  readonly extraFlags?: readonly string[];
  /** How agents are known; by certificates of the workspace's CA if not given. */
  readonly agentsShow?: "certificate" | "token";
  /** What takes the flags in place of the maker's program. */
  readonly program?: readonly string[];
  /**
   * Words before the command, such as `ip netns exec nsA`. With any, nobody
   * waits for the program, whose health endpoint may be out of reach.
   */
  readonly prefix?: readonly string[];
  /** Where agents are awaited; 127.0.0.1 if not given. */
  readonly agentHost?: string;
}

export interface RunningServer {
  readonly child: Child;
  readonly maker: Maker;
  readonly frontend: Frontend;
  readonly agentHost: string;
  readonly agentPort: number;
  readonly healthUrl: string;
  readonly adminUrl: string;
  /** Whether {@linkcode ServerOptions.prefix} puts its health out of reach. */
  readonly isElsewhere: boolean;
}

export interface RunningAgent {
  readonly child: Child;
  readonly healthUrl: string;
}

/** The command line of our program, without its flags. */
export function ourCommand(...subcommand: readonly string[]): string[] {
  const words = subcommand[0] === "proxy"
    ? [...subcommand, ...proxyKeepsNothing(subcommand)]
    : subcommand;
  return [...programWords(), ...words];
}

/**
 * Flags without which a proxy writes where the machine's own one does
 * (`/var/lib/tunnel/proxy`), unless `words` says where to.
 */
export function proxyKeepsNothing(words: readonly string[]): string[] {
  const has = (flag: string) => words.some((word) => word.startsWith(flag));
  return [
    "--address-file=",
    "--catalog-copies=",
    ...(has("--discovery=") ? ["--discovery-state="] : []),
  ].filter((flag) => !has(flag)).map((flag) => `${flag}none`);
}

/** Starts a server and waits until it listens. */
export async function startServer(
  workspace: Workspace,
  options: ServerOptions,
): Promise<RunningServer> {
  const { ca, server } = workspace.certificates;
  const agentPort = freePort();
  const healthPort = freePort();
  const adminPort = freePort();
  const { prefix = [], agentHost = "127.0.0.1" } = options;
  const frontend: Frontend = options.transport === "uds"
    ? { transport: "uds", path: workspace.path("front.sock") }
    : { transport: "tcp", host: "127.0.0.1", port: freePort() };
  const flags = [
    `--mode=${options.mode}`,
    "--v=0",
    `--agent-port=${agentPort}`,
    `--health-port=${healthPort}`,
    `--admin-port=${adminPort}`,
    `--agent-bind-address=${agentHost}`,
    "--health-bind-address=127.0.0.1",
    `--cluster-cert=${server.cert}`,
    `--cluster-key=${server.key}`,
    ...(options.agentsShow === "token" ? [] : [`--cluster-ca-cert=${ca}`]),
    ...frontendFlags(frontend, workspace),
    ...options.extraFlags ?? [],
  ];
  const program = options.program ?? await commandOf(options.maker, "server");
  const child = new Child({
    name: `${options.maker} server`,
    command: [...prefix, ...program, ...flags],
    logFile: workspace.path(`${options.maker}-server.log`),
  });
  const healthUrl = `http://127.0.0.1:${healthPort}`;
  const isElsewhere = prefix.length > 0;
  if (!isElsewhere) await child.untilReady(`${healthUrl}/healthz`);
  const { maker } = options;
  return {
    child,
    maker,
    frontend,
    agentHost,
    agentPort,
    healthUrl,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    isElsewhere,
  };
}

function frontendFlags(frontend: Frontend, workspace: Workspace): string[] {
  if (frontend.transport === "uds") {
    return [`--uds-name=${frontend.path}`, "--server-port=0"];
  }
  const { ca, server } = workspace.certificates;
  return [
    `--server-port=${frontend.port}`,
    "--server-bind-address=127.0.0.1",
    `--server-cert=${server.cert}`,
    `--server-key=${server.key}`,
    `--server-ca-cert=${ca}`,
  ];
}

/**
 * Starts an agent of `server` and waits until both ends are ready.
 *
 * @param prefix As {@linkcode ServerOptions.prefix}.
 */
export async function startAgent(
  workspace: Workspace,
  server: RunningServer,
  maker: Maker,
  extraFlags: readonly string[] = [],
  prefix: readonly string[] = [],
): Promise<RunningAgent> {
  const agent = await launchAgent(workspace, server, maker, extraFlags, prefix);
  const { child, healthUrl } = agent;
  if (prefix.length === 0) await child.untilReady(`${healthUrl}/readyz`);
  if (server.isElsewhere) return agent;
  await server.child.untilReady(`${server.healthUrl}/readyz`);
  return agent;
}

/** The same without waiting: it may be one that does not get in. */
export async function launchAgent(
  workspace: Workspace,
  server: Pick<RunningServer, "agentHost" | "agentPort">,
  maker: Maker,
  extraFlags: readonly string[] = [],
  prefix: readonly string[] = [],
): Promise<RunningAgent> {
  const { ca, agent } = workspace.certificates;
  const healthPort = freePort();
  const child = new Child({
    name: `${maker} agent`,
    command: [
      ...prefix,
      ...await commandOf(maker, "agent"),
      "--v=0",
      `--proxy-server-host=${server.agentHost}`,
      `--proxy-server-port=${server.agentPort}`,
      `--ca-cert=${ca}`,
      `--agent-cert=${agent.cert}`,
      `--agent-key=${agent.key}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${healthPort}`,
      `--admin-server-port=${freePort()}`,
      "--agent-identifiers=ipv4=127.0.0.1&host=localhost",
      "--sync-interval=100ms",
      "--sync-interval-cap=1s",
      ...extraFlags,
    ],
    logFile: workspace.path(`${maker}-agent.log`),
  });
  return { child, healthUrl: `http://127.0.0.1:${healthPort}` };
}

/** Konnectivity's agent only drains on SIGTERM and goes on: kill it. */
export async function stopTunnel(
  server: RunningServer,
  agent: RunningAgent,
): Promise<void> {
  await Promise.all([agent.child.stop("SIGKILL"), server.child.stop()]);
}

/** The command line of a maker's program, without its flags. */
export async function commandOf(
  maker: Maker,
  role: "server" | "agent",
): Promise<string[]> {
  if (maker === "ours") return ourCommand(role);
  if (maker === "older") return [await olderProgram(), role];
  return [await findPeer(`konnectivity-${role}`)];
}

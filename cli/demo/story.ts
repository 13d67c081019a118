/**
 * What the demo does, in order. How it dials, prints and starts processes is
 * handed in.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import type { TunnelConn } from "../../client/tunnel_conn.ts";
import {
  figuresTable,
  type PathFigures,
  PICTURE,
  progressBar,
} from "./figures.ts";
import { freePort, type Stage, targetRequest } from "./stage.ts";

/** Enough for a median, few enough for a second. */
const REQUESTS = 20;
const REQUEST_BYTES = 16 * 1024;
/** Moved over all paths together. */
const BULK_BYTES = 256 * 1024 * 1024;
const NODES = ["alpha", "beta"] as const;
const PROTOCOLS: readonly (readonly [FrontendProtocol, string])[] = [
  ["grpc", "gRPC"],
  ["http-connect", "CONNECT"],
];

/** What the story needs from outside. */
interface StoryTools {
  readonly stage: Stage;
  /** Dials the target behind `node` through the server at a unix socket. */
  readonly dial: (
    socketPath: string,
    protocol: FrontendProtocol,
    node: string,
    port: number,
  ) => Promise<TunnelConn>;
  /** Milliseconds; only differences mean anything. */
  readonly now: () => number;
  readonly print: (text: string) => void;
  /** Lines may be drawn over. */
  readonly isTerminal: boolean;
}

/**
 * Tells it.
 *
 * @throws {Error} When anything does not go as promised.
 */
export async function tellStory(tools: StoryTools): Promise<void> {
  const { stage, print } = tools;
  const startedMs = tools.now();
  print("A server, two agents and a target, each a process:\n");
  const targetPort = await setUp(tools);
  const socketPath = stage.path("server/frontend.sock");
  const upSeconds = ((tools.now() - startedMs) / 1000).toFixed(1);
  print(
    `Both nodes joined, ${upSeconds} s after there was nothing: each has a ` +
      "key of its own\nand a certificate for it.\n\n" +
      "Requests and 256 MiB through every path:\n\n",
  );

  const connect = (protocol: FrontendProtocol, node: string) =>
    tools.dial(socketPath, protocol, node, targetPort);
  const figures = await measurePaths(tools, connect);
  print(`\n${figuresTable(figures)}\n\n`);

  print("Now the agent on beta loses its power. Dialing beta once more:\n");
  await stage.kill("agent beta");
  print(`  refused: ${await refusalOf(() => connect("grpc", "beta"))}\n`);
  print("alpha goes on:\n");
  const tookMs = await timed(tools, async () => {
    await fetchBytes(await connect("grpc", "alpha"), REQUEST_BYTES);
  });
  print(`  ${REQUEST_BYTES} bytes in ${tookMs.toFixed(1)} ms\n`);
  print(PICTURE);
  const seconds = (tools.now() - startedMs) / 1000;
  print(`\nDone in ${seconds.toFixed(1)} s; nothing is left behind.\n`);
}

/** Starts everything, as one would by hand; gives the target's port. */
async function setUp({ stage, print }: StoryTools): Promise<number> {
  const targetPort = stage.startForLine("target", "demo", "target");
  // If the server fails first, this failure is not to go unheard.
  targetPort.catch(() => {});
  const state = `--state-dir=${stage.path("server")}`;
  const [agentPort, healthPort] = [freePort(), freePort()];
  print("  tunnel server\n");
  stage.start(
    "server",
    "server",
    state,
    "--agent-bind-address=127.0.0.1",
    `--agent-port=${agentPort}`,
    "--health-bind-address=127.0.0.1",
    `--health-port=${healthPort}`,
    `--admin-port=${freePort()}`,
  );
  await stage.ready("server", healthPort, "healthz");
  print(`  tunnel token create --uses ${NODES.length}\n`);
  const token = await createToken(stage, state);
  for (const node of NODES) {
    print(
      `  tunnel agent --server 127.0.0.1:${agentPort} ` +
        `--join ${token.slice(0, 8)}… --node ${node}\n`,
    );
  }
  // Together, so that whichever fails first leaves no failure unheard.
  const [port] = await Promise.all([
    targetPort,
    ...NODES.map((node) => startAgent(stage, node, agentPort, token)),
  ]);
  return Number(port);
}

/** What lets both nodes join. */
async function createToken(stage: Stage, state: string): Promise<string> {
  const uses = `--uses=${NODES.length}`;
  const printed = await stage.run("token", "token", "create", uses, state);
  return printed.match(/tnl1\.\S+/)![0];
}

async function startAgent(
  stage: Stage,
  node: string,
  serverPort: number,
  token: string,
): Promise<void> {
  const healthPort = freePort();
  stage.start(
    `agent ${node}`,
    "agent",
    `--server=127.0.0.1:${serverPort}`,
    `--join=${token}`,
    `--node=${node}`,
    `--state-dir=${stage.path(node)}`,
    "--health-server-host=127.0.0.1",
    `--health-server-port=${healthPort}`,
    `--admin-server-port=${freePort()}`,
  );
  await stage.ready(`agent ${node}`, healthPort, "readyz");
}

async function measurePaths(
  tools: StoryTools,
  connect: (protocol: FrontendProtocol, node: string) => Promise<TunnelConn>,
): Promise<PathFigures[]> {
  const bulkBytes = BULK_BYTES / (NODES.length * PROTOCOLS.length);
  const progress = new Progress(tools);
  const figures: PathFigures[] = [];
  for (const [protocol, name] of PROTOCOLS) {
    for (const node of NODES) {
      const requestsMs: number[] = [];
      for (let request = 0; request < REQUESTS; request++) {
        requestsMs.push(
          await timed(tools, async () => {
            await fetchBytes(await connect(protocol, node), REQUEST_BYTES);
          }),
        );
      }
      const bulkMs = await timed(tools, async () => {
        const conn = await connect(protocol, node);
        await fetchBytes(conn, bulkBytes, (count) => progress.add(count));
      });
      progress.rest(bulkMs);
      const path = `${name} → ${node}`;
      figures.push({
        path,
        requests: REQUESTS,
        requestsMs,
        bulkBytes,
        bulkMs,
      });
    }
  }
  tools.print("\n");
  return figures;
}

/** Asks for `bytes`, takes them, and ends as one should. */
async function fetchBytes(
  conn: TunnelConn,
  bytes: number,
  onArrived?: (count: number) => void,
): Promise<void> {
  await conn.write(targetRequest(bytes));
  conn.closeWrite();
  const chunk = new Uint8Array(65_536);
  let arrived = 0;
  for (;;) {
    const count = await conn.read(chunk);
    if (count === null) break;
    arrived += count;
    onArrived?.(count);
  }
  if (arrived !== bytes) {
    throw new Error(
      `Cannot trust this tunnel: ${arrived} bytes came, ${bytes} were sent`,
    );
  }
  const end = await conn.closed;
  if (end.kind !== "clean") {
    throw new Error(`Cannot end in order: ${end.kind}, ${end.reason}`);
  }
}

async function refusalOf(dial: () => Promise<TunnelConn>): Promise<string> {
  let conn: TunnelConn;
  try {
    conn = await dial();
  } catch (error) {
    return messageOf(error);
  }
  conn.close();
  throw new Error("Cannot be: a node without its agent was reached");
}

async function timed(
  tools: StoryTools,
  what: () => Promise<void>,
): Promise<number> {
  const startedMs = tools.now();
  await what();
  return tools.now() - startedMs;
}

/** The one bar over all paths; time between the paths does not count. */
class Progress {
  #bytes = 0;
  #restedMs = 0;
  #pathStartedMs: number | undefined;
  #drawnMs = -Infinity;

  constructor(private readonly tools: StoryTools) {}

  add(bytes: number): void {
    const nowMs = this.tools.now();
    this.#pathStartedMs ??= nowMs;
    this.#bytes += bytes;
    // Ten times a second is smooth, and costs the measurement nothing.
    if (!this.tools.isTerminal || nowMs - this.#drawnMs < 100) return;
    this.#drawnMs = nowMs;
    this.#draw(this.#restedMs + nowMs - this.#pathStartedMs);
  }

  /** A path is through, after `tookMs`. */
  rest(tookMs: number): void {
    this.#restedMs += tookMs;
    this.#pathStartedMs = undefined;
    this.#draw(this.#restedMs);
  }

  #draw(tookMs: number): void {
    const bar = progressBar(this.#bytes, BULK_BYTES, tookMs);
    this.tools.print(this.tools.isTerminal ? `\r${bar}` : `${bar}\n`);
  }
}

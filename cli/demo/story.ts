/**
 * What the demo does, in order. How it prints and starts processes is handed in.
 *
 * @module
 */

import { BenchConn } from "../bench/bench_conn.ts";
import { progressBar as barOf } from "../program/progress.ts";
import type { Stage } from "./stage.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import type { BenchService } from "../../proto/link/bench_wire.ts";

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
  const startedMs = performance.now();
  print("A server, two agents and a target, each a process:\n");
  const address = await setUp(tools);
  const path = stage.path("server/frontend.sock");
  const upSeconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  print(
    `Both nodes joined, ${upSeconds} s after there was nothing: each has a ` +
      "key of its own\nand a certificate for it.\n\n" +
      "Requests and 256 MiB through every path:\n\n",
  );

  const wayTo: WayTo = (protocol, node) => ({ path, protocol, node, address });
  const figures = await measurePaths(tools, wayTo);
  print(`\n${figuresTable(figures)}\n\n`);

  print("Now the agent on beta loses its power. Dialing beta once more:\n");
  await stage.kill("agent beta");
  const beta = fetchBytes(wayTo("grpc", "beta"), "echo", REQUEST_BYTES);
  print(`  refused: ${await refusalOf(beta)}\n`);
  print("alpha goes on:\n");
  const tookMs = await timed(
    () => fetchBytes(wayTo("grpc", "alpha"), "echo", REQUEST_BYTES),
  );
  print(`  ${REQUEST_BYTES} bytes in ${tookMs.toFixed(1)} ms\n`);
  print(PICTURE);
  const seconds = (performance.now() - startedMs) / 1000;
  print(`\nDone in ${seconds.toFixed(1)} s; nothing is left behind.\n`);
}

/** Starts everything, as one would by hand; gives the target's address. */
async function setUp({ stage, print }: StoryTools): Promise<string> {
  const target = stage.startForLine("target", "bench", "--serve", "0");
  // If the server fails first, this failure is not to go unheard.
  target.catch(() => {});
  const state = `--state-dir=${stage.path("server")}`;
  print("  tunnel server\n");
  const { agents: server = "" } = await stage.startReady(
    ...["server", "server", "server"] as const,
    "--agent-bind-address=127.0.0.1",
    "--health-bind-address=127.0.0.1",
    ...["--agent-port=0", "--health-port=0", "--admin-port=0"],
  );
  print(`  tunnel token create --uses ${NODES.length}\n`);
  const token = await createToken(stage, state);
  for (const node of NODES) {
    print(
      `  tunnel agent --server ${server} --join ${token.slice(0, 8)}… ` +
        `--node ${node}\n`,
    );
  }
  // Together, so that whichever fails first leaves no failure unheard.
  const [address] = await Promise.all([
    target,
    ...NODES.map((node) => startAgent(stage, node, server, token)),
  ]);
  return address;
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
  server: string,
  token: string,
): Promise<void> {
  await stage.startReady(
    `agent ${node}`,
    node,
    ...["agent", `--server=${server}`, `--join=${token}`, `--node=${node}`],
    "--health-server-host=127.0.0.1",
    ...["--health-server-port=0", "--admin-server-port=0"],
  );
}

async function measurePaths(
  tools: StoryTools,
  wayTo: WayTo,
): Promise<PathFigures[]> {
  const bulkBytes = BULK_BYTES / (NODES.length * PROTOCOLS.length);
  const progress = new Progress(tools);
  const figures: PathFigures[] = [];
  for (const [protocol, name] of PROTOCOLS) {
    for (const node of NODES) {
      const way = wayTo(protocol, node);
      const requestsMs: number[] = [];
      for (let request = 0; request < REQUESTS; request++) {
        const tookMs = await timed(
          () => fetchBytes(way, "echo", REQUEST_BYTES),
        );
        requestsMs.push(tookMs);
      }
      const add = (count: number) => progress.add(count);
      const bulkMs = await timed(
        () => fetchBytes(way, "source", bulkBytes, add),
      );
      progress.rest(bulkMs);
      const path = `${name} → ${node}`;
      const requests = REQUESTS;
      figures.push({ path, requests, requestsMs, bulkBytes, bulkMs });
    }
  }
  tools.print("\n");
  return figures;
}

/** To the target behind a node. */
interface Way {
  /** The server's unix socket. */
  readonly path: string;
  readonly protocol: FrontendProtocol;
  readonly node: string;
  /** The target's bytes. */
  readonly address: string;
}

type WayTo = (protocol: FrontendProtocol, node: string) => Way;

/** Reads bytes, over a connection for them alone, which ends as one should. */
async function fetchBytes(
  { path, protocol, node, address }: Way,
  service: BenchService,
  bytes: number,
  onArrived: (count: number) => void = () => {},
): Promise<void> {
  const dialer = openDialer({
    kind: "tunnel",
    protocol,
    address: { kind: "unix", path },
  });
  const over = new AbortController();
  try {
    const route = { dialer, address, node };
    const conn = await BenchConn.open(route, service, over.signal);
    if (service === "echo") await conn.write(new Uint8Array(bytes));
    const chunk = new Uint8Array(65_536);
    for (let left = bytes; left > 0;) {
      const count = await conn.read(chunk.subarray(0, left));
      left -= count;
      onArrived(count);
    }
    if (service === "echo") await conn.end();
  } finally {
    over.abort();
    dialer.close();
  }
}

async function refusalOf(fetching: Promise<void>): Promise<string> {
  try {
    await fetching;
  } catch (error) {
    return messageOf(error);
  }
  throw new Error("Cannot be: a node without its agent was reached");
}

async function timed(what: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await what();
  return performance.now() - startedMs;
}

/** The one bar over all paths; time between the paths does not count. */
class Progress {
  #bytes = 0;
  #restedMs = 0;
  #pathStartedMs: number | undefined;
  #drawnMs = -Infinity;

  constructor(private readonly tools: StoryTools) {}

  add(bytes: number): void {
    const nowMs = performance.now();
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

/** What was measured on one path. */
interface PathFigures {
  /** Such as `gRPC → alpha`. */
  readonly path: string;
  readonly requests: number;
  /** Dial, request and whole answer, each. */
  readonly requestsMs: readonly number[];
  readonly bulkBytes: number;
  readonly bulkMs: number;
}

const MIB = 1024 * 1024;
const BAR_COLUMNS = 32;

/** One line without its end, shorter than 80 columns. */
export function progressBar(
  doneBytes: number,
  allBytes: number,
  tookMs: number,
): string {
  const bar = barOf(doneBytes / allBytes, BAR_COLUMNS);
  const done = String(Math.floor(doneBytes / MIB)).padStart(4);
  return `  ${bar} ${done} of ${allBytes / MIB} MiB  ` +
    `${speed(doneBytes, tookMs).padStart(6)} MB/s`;
}

/** Lines, one per path, under a heading. */
export function figuresTable(rows: readonly PathFigures[]): string {
  const cells = rows.map((row) => [
    row.path,
    String(row.requests),
    `${row.bulkBytes / MIB} MiB`,
    speed(row.bulkBytes, row.bulkMs),
    `${median(row.requestsMs).toFixed(1)} ms`,
  ]);
  const heading = ["path", "requests", "bytes", "MB/s", "p50"];
  const all = [heading, ...cells];
  const widths = heading.map((_, column) =>
    Math.max(...all.map((row) => row[column]!.length))
  );
  return all.map((row) =>
    "  " +
    row.map((cell, column) =>
      column === 0
        ? cell.padEnd(widths[column]!)
        : cell.padStart(widths[column]!)
    ).join("   ")
  ).join("\n");
}

/** The way of a byte through the demo. */
export const PICTURE = `
  this process ── gRPC or CONNECT, unix socket ──► tunnel server
                                                     ║
                                                     ║ mTLS, HTTP/2: a stream
                                                     ║ for each connection
                                                     ║
                                    target ◄─ TCP ─ tunnel agent (alpha, beta)
`;

/** The middle one; of two, the upper. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function speed(bytes: number, tookMs: number): string {
  return tookMs > 0 ? (bytes / 1e3 / tookMs).toFixed(0) : "0";
}

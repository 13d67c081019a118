/**
 * How long a node takes from nothing to the first byte of its target: two
 * commands, as people type them, and a caller that is waiting.
 *
 * @module
 */

import {
  connectThrough,
  readExactly,
  writeAll,
} from "../interop/connect_client.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import { Child, killAllChildren } from "../../tests/support/program/child.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { IdentityStage } from "../../tests/support/rigs/identity_stage.ts";
import { arrivals } from "../../tests/support/peers/sockets.ts";

const ROUNDS = 3;
const BAR_MS = 3_000;
const RETRY_MS = 10;
const TIMEOUT_MS = 30_000;

/** Runs it and says how long it took. */
export async function soakFirstJoin(tally: Tally): Promise<void> {
  const workspace = await Workspace.make();
  using echo = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  void serveEcho(echo);
  const target = `127.0.0.1:${echo.addr.port}`;
  const took: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      took.push(await joinOnce(workspace, target));
    }
  } finally {
    await killAllChildren();
  }
  const all = took.map((ms) => `${Math.round(ms)}`).join(", ");
  const line = `from \`tunnel token create\` to the first byte behind a new ` +
    `node: ${all} ms`;
  if (Math.max(...took) < BAR_MS) tally.pass(line);
  else tally.fail("a node joins in less than three seconds", line);
  await workspace.remove();
}

/** @returns Milliseconds from the first command to the first byte. */
async function joinOnce(workspace: Workspace, target: string): Promise<number> {
  const stage = new IdentityStage(workspace);
  const server = await stage.start();
  const beginMs = performance.now();
  const token = await stage.createToken("--node=edge-7");
  const agent = new Child({
    name: "agent",
    command: [
      ...ourCommand("agent"),
      `--server=127.0.0.1:${stage.agentPort}`,
      `--join=${token}`,
      "--node=edge-7",
      `--state-dir=${workspace.path("agent")}`,
      "--health-server-host=127.0.0.1",
      "--health-server-port=0",
      "--admin-server-port=0",
    ],
    logFile: workspace.path("agent.log"),
  });
  await firstByte(stage.socketPath, target, beginMs + TIMEOUT_MS);
  const tookMs = performance.now() - beginMs;
  await Promise.all([agent.stop("SIGKILL"), server.stop("SIGKILL")]);
  return tookMs;
}

async function firstByte(
  path: string,
  target: string,
  deadlineMs: number,
): Promise<void> {
  const said = new TextEncoder().encode("hello");
  while (true) {
    const conn = await Deno.connect({ transport: "unix", path });
    try {
      await connectThrough(conn, target);
      await writeAll(conn, said);
      await readExactly(conn, said.length);
      return;
    } catch (error) {
      // Refused until there is a node.
      if (performance.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    } finally {
      conn.close();
    }
  }
}

async function serveEcho(listener: Deno.TcpListener): Promise<void> {
  for await (const conn of arrivals(listener)) {
    // Callers hang up when they have heard enough.
    conn.readable.pipeTo(conn.writable).catch(() => {});
  }
}

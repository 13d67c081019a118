/**
 * Every server with every agent and every client: ours and Konnectivity's,
 * gRPC and CONNECT, on a unix socket and on TCP with mutual TLS.
 *
 * Usage: `deno task lab matrix [--ours=server,agent,client] [REGEX]`
 *
 * `--ours` says which of our programs take part (default: all); with
 * `--ours=` only Konnectivity's meet each other. REGEX picks cells by their
 * name, e.g. `ours.*grpc/uds`. Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { killAllChildren } from "../../tests/support/program/child.ts";
import {
  type Maker,
  type Protocol,
  type RunningAgent,
  type RunningServer,
  startAgent,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { canReach, type ClientName, CLIENTS } from "./clients.ts";
import { startTarget, type Target } from "./target.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { counted } from "./case_runner.ts";

const PROTOCOLS: readonly Protocol[] = ["grpc", "http-connect"];
const TRANSPORTS = ["uds", "tcp"] as const;

/** Cells that share a server and an agent. */
interface Row {
  readonly server: Maker;
  readonly agent: Maker;
  readonly protocol: Protocol;
  readonly transport: "uds" | "tcp";
  readonly clients: readonly ClientName[];
}

function rows(ours: ReadonlySet<string>, pattern: RegExp): Row[] {
  const makers = (role: string): readonly Maker[] =>
    ours.has(role) ? ["ours", "konnectivity"] : ["konnectivity"];
  const all: Row[] = [];
  for (const server of makers("server")) {
    for (const agent of makers("agent")) {
      for (const protocol of PROTOCOLS) {
        for (const transport of TRANSPORTS) {
          const row = { server, agent, protocol, transport };
          const clients = (Object.keys(CLIENTS) as ClientName[]).filter(
            (client) =>
              (client !== "dial" || ours.has("client")) &&
              canReach(client, protocol, transport) &&
              pattern.test(nameOf(row, client)),
          );
          if (clients.length > 0) all.push({ ...row, clients });
        }
      }
    }
  }
  return all;
}

function nameOf(row: Omit<Row, "clients">, client: ClientName): string {
  const ends = `${row.server} server, ${row.agent} agent`;
  return `${ends}, ${row.protocol}/${row.transport}, ${client}`;
}

async function runRow(
  row: Row,
  target: Target,
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  let server: RunningServer;
  let agent: RunningAgent;
  try {
    server = await startServer(workspace, {
      maker: row.server,
      // Ours on TCP has to tell the protocols apart, on UDS it is told.
      mode: row.server === "ours" && row.transport === "tcp"
        ? "auto"
        : row.protocol,
      transport: row.transport,
    });
    agent = await startAgent(workspace, server, row.agent);
  } catch (error) {
    for (const client of row.clients) tally.fail(nameOf(row, client), error);
    await killAllChildren();
    return;
  }
  const { protocol } = row;
  const context = {
    server: row.server,
    protocol,
    frontend: server.frontend,
    target,
    workspace,
    note: (line: string) => tally.note(line),
  };
  for (const client of row.clients) {
    await tally.run(nameOf(row, client), () => CLIENTS[client](context));
  }
  const name = `${row.server} server, ${row.agent} agent, ` +
    `${row.protocol}/${row.transport}`;
  try {
    await mustEndWell(server, agent);
  } catch (error) {
    tally.fail(`${name} ends well`, error);
  }
  await killAllChildren();
}

/** Both have lived until now; the server outlives its agent and then ends. */
async function mustEndWell(
  server: RunningServer,
  agent: RunningAgent,
): Promise<void> {
  for (const child of [server.child, agent.child]) {
    if (!child.hasEnded) continue;
    throw new Error(`the ${child.name} died:\n${await child.logTail()}`);
  }
  await agent.child.stop("SIGKILL");
  await server.child.untilReady(`${server.healthUrl}/healthz`);
  await server.child.stop();
  const { code, signal } = await server.child.ended;
  // Konnectivity's own status is its own business.
  if (server.maker === "ours" && (code !== 0 || signal !== null)) {
    const log = await server.child.logTail();
    throw new Error(`the server ended with ${signal ?? code}:\n${log}`);
  }
}

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, { string: ["ours"] });
  const ours = String(flags.ours ?? "server,agent,client").split(",");
  const pattern = new RegExp(String(flags._[0] ?? "."));
  return await counted("the peers start", async (tally, workspace) => {
    const target = startTarget();
    for (const row of rows(new Set(ours), pattern)) {
      await runRow(row, target, workspace, tally);
    }
    await target.close();
  });
}

if (import.meta.main) Deno.exit(await main());

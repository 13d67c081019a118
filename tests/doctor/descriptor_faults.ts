/**
 * An agent and a server whose descriptors are used up: both are started with few,
 * and callers stay until no further one is served.
 *
 * @module
 */

import { limitedTo } from "../mistakes/surroundings.ts";
import { openDescriptors } from "../support/rigs/tunnel_processes.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";
import { sleep } from "../support/watch/event_loop.ts";
import { patience } from "../support/watch/patience.ts";

/**
 * A program of ours has some forty when nobody uses it, and keeps twelve for
 * links and administration.
 */
const AGENT_LIMIT = 80;
/** More than the callers of the agent take. */
const SERVER_LIMIT = 128;

/** Programs open some files on the way, and connections for who asks them. */
const A_FEW = 4;
const FREE_MS = 20_000;
const POLL_MS = 20;

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export async function descriptorFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const { identity } = stage;
  await identity.child.stop();
  identity.prefix = limitedTo(SERVER_LIMIT);
  await identity.start();
  stage.prefix = limitedTo(AGENT_LIMIT);
  const agent = await stage.agent("poor");
  // What earlier callers had comes back some time after they are gone.
  const leastOf = new Map(
    [agent, identity.child].map((child) =>
      [child.pid, openDescriptors(child.pid)] as const
    ),
  );
  const fresh = async (run: () => Promise<void>) => {
    for (const [pid, least] of leastOf) await untilFree(pid, least);
    await run();
  };
  const there = `127.0.0.1:${stage.service(untilGone)}`;
  const source = "fatedier/frp#752";
  const busyAgent = (run: () => Promise<void>) =>
    fresh(() => whileAgentIsFull(identity.socket, there, run));
  const busyServer = (run: () => Promise<void>) =>
    fresh(() => whileServerIsFull(identity.socket, run));
  const remedy = /"ulimit -n" \(LimitNOFILE.*restart/;
  return [
    fault("the agent's descriptors are used up, on the way to a target", source,
      "TUN513", "target", remedy, ["target", there, "--node=poor", stage.asked], { around: busyAgent }),
    fault("the agent's descriptors are used up, as its server sees it", source,
      "TUN513", "descriptors", remedy, ["node", "poor", stage.asked], { around: busyAgent }),
    fault("the descriptors of the agent of this machine are used up", source,
      "TUN513", "descriptors", remedy, ["agent", `--state-dir=${stage.nodeDirectory("poor")}`], { around: busyAgent }),
    fault("the server's descriptors are used up", source,
      "TUN513", "descriptors", remedy,
      ["server", ...stage.ownFlags],
      { around: busyServer }),
  ];
}

async function untilFree(pid: number, least: number): Promise<void> {
  const deadlineMs = Date.now() + patience(FREE_MS);
  while (openDescriptors(pid) > least + A_FEW) {
    if (Date.now() > deadlineMs) throw new Error(`${pid} keeps descriptors`);
    await sleep(POLL_MS);
  }
}

async function untilGone(conn: Deno.TcpConn): Promise<void> {
  const bytes = new Uint8Array(16);
  while (await conn.read(bytes) !== null);
}

/** Runs while the agent has as many callers as it can have. */
async function whileAgentIsFull(
  socket: string,
  target: string,
  run: () => Promise<void>,
): Promise<void> {
  const callers: Deno.Conn[] = [];
  try {
    do {
      if (callers.length > SERVER_LIMIT) throw new Error("all are served");
      callers.push(await Deno.connect({ transport: "unix", path: socket }));
    } while (await isServed(callers.at(-1)!, target));
    await run();
  } finally {
    for (const conn of callers) conn.close();
  }
}

/** @throws {Error} It is refused for another reason than wanted. */
async function isServed(conn: Deno.Conn, target: string): Promise<boolean> {
  const head = `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`;
  await conn.write(new TextEncoder().encode(head));
  const bytes = new Uint8Array(4_096);
  const count = await conn.read(bytes) ?? 0;
  const answer = new TextDecoder().decode(bytes.subarray(0, count));
  if (answer.startsWith("HTTP/1.1 200 ")) return true;
  if (/too many open files/.test(answer)) return false;
  throw new Error(`a caller is told "${answer}"`);
}

/** Runs while callers that say nothing, and reach no agent, fill the server. */
async function whileServerIsFull(
  socket: string,
  run: () => Promise<void>,
): Promise<void> {
  const callers = await Promise.all(
    Array.from(
      { length: SERVER_LIMIT },
      () => Deno.connect({ transport: "unix", path: socket }),
    ),
  );
  try {
    const gone = callers.map((conn) =>
      conn.read(new Uint8Array(1)).then(() => {}, () => {})
    );
    await Promise.race(gone);
    await run();
  } finally {
    for (const conn of callers) conn.close();
  }
}

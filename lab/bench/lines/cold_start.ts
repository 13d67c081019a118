/**
 * How long after server and agent were started, at once and in any order, the
 * first byte comes back through them. Started as the product is shipped: with
 * the defaults of every flag that can be left out.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { ourCommand } from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { generate, type Sample, SpoiledRunError } from "../generator.ts";
import { median } from "../comparison.ts";
import { less, type Metric } from "../metric.ts";
import { startTarget } from "../../peers/load_target.ts";

type Starter = "ours" | "konnectivity";

/** What is started first, and how much later the other. */
interface StartOrder {
  readonly isAgentFirst: boolean;
  readonly offsetMs: number;
}

/** Half of the starts are at the same moment, the others nearly so. */
const OFFSETS_MS: readonly number[] = [0, 10, 0, 30, 0, 60, 0, 100, 0, 200];

/** All orders with all offsets: 20 starts. */
const START_ORDERS: readonly StartOrder[] = OFFSETS_MS.flatMap(
  (offsetMs) => [
    { isAgentFirst: false, offsetMs },
    { isAgentFirst: true, offsetMs },
  ],
);

const QUICK_STARTS = 6;

export const COLD_START: Metric = {
  title: "cold start of server and agent: first byte",
  contenders: ["ours", "konnectivity"],
  isOnRequest: true,
  figures: [
    less("p50ms", "p50", "ms"),
    less("p100ms", "p100", "ms", { limit: 400 }),
  ],
  async run({ name, site: { workspace } }, { isQuick }): Promise<Sample> {
    const starter = name as Starter;
    const orders = START_ORDERS.slice(0, isQuick ? QUICK_STARTS : undefined);
    const times: number[] = [];
    for (const order of orders) {
      times.push(await timeToFirstByte(starter, workspace, order));
    }
    return { p50ms: median(times), p100ms: Math.max(...times) };
  },
};

/** Milliseconds since the later of both was started. */
async function timeToFirstByte(
  starter: Starter,
  workspace: Workspace,
  { isAgentFirst, offsetMs }: StartOrder,
): Promise<number> {
  const commands = await commandsOf(starter, workspace);
  const targetAddress = `127.0.0.1:${freePort()}`;
  const target = await startTarget(workspace, targetAddress);
  const children = [target];
  const start = (role: "server" | "agent") => {
    children.push(
      new Child({
        name: role,
        command: commands[role],
        logFile: workspace.path(`${role}.log`),
      }),
    );
    return performance.timeOrigin + performance.now();
  };
  try {
    // It is there first, as the user is who waits for the tunnel.
    const seen = generate({
      workspace,
      program: "linegen",
      flags: ["first", `-via=unix:${commands.socket}`, `-to=${targetAddress}`],
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    start(isAgentFirst ? "agent" : "server");
    if (offsetMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, offsetMs));
    }
    const startedMs = start(isAgentFirst ? "server" : "agent");
    const { epochMs } = await seen;
    if (epochMs === undefined) throw new SpoiledRunError("no time was printed");
    return epochMs - startedMs;
  } finally {
    await Promise.all(children.map((child) => child.stop("SIGKILL")));
  }
}

async function commandsOf(
  starter: Starter,
  workspace: Workspace,
): Promise<{ server: string[]; agent: string[]; socket: string }> {
  const { ca, server, agent } = workspace.certificates;
  const socket = workspace.path("front.sock");
  const agentPort = freePort();
  const program = async (role: "server" | "agent") =>
    starter === "ours"
      ? ourCommand(role)
      : [await findPeer(`konnectivity-${role}`), "--v=0"];
  return {
    socket,
    server: [
      ...await program("server"),
      "--mode=http-connect",
      `--uds-name=${socket}`,
      "--server-port=0",
      `--agent-port=${agentPort}`,
      `--health-port=${freePort()}`,
      `--admin-port=${freePort()}`,
      `--cluster-cert=${server.cert}`,
      `--cluster-key=${server.key}`,
      `--cluster-ca-cert=${ca}`,
    ],
    agent: [
      ...await program("agent"),
      "--proxy-server-host=127.0.0.1",
      `--proxy-server-port=${agentPort}`,
      `--health-server-port=${freePort()}`,
      `--admin-server-port=${freePort()}`,
      `--ca-cert=${ca}`,
      `--agent-cert=${agent.cert}`,
      `--agent-key=${agent.key}`,
    ],
  };
}

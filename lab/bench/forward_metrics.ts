/**
 * Datagrams through `tunnel forward --udp`, beside frp's udp proxy.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import {
  ourCommand,
  startAgent,
  startServer,
  stopTunnel,
} from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { generate } from "./generator.ts";
import { type Figure, less, type Metric, more } from "./metric.ts";
import { startFrpPair } from "./tunnels/forwarders.ts";

/** A port that leads to the target, and what it stands on. */
interface ForwardedPort {
  readonly port: number;
  readonly pieces: readonly Child[];
  stop(): Promise<void>;
}

async function startOurs(
  workspace: Workspace,
  target: string,
): Promise<ForwardedPort> {
  const server = await startServer(workspace, {
    ...{ maker: "ours", mode: "auto", transport: "uds" },
  });
  const agent = await startAgent(workspace, server, "ours");
  if (server.frontend.transport !== "uds") throw new TypeError("no socket");
  const port = freePort();
  const forward = new Child({
    name: "forward",
    command: [
      ...ourCommand("forward", "--udp", `127.0.0.1:${port}:${target}`),
      `--server=unix:${server.frontend.path}`,
    ],
    logFile: workspace.path("forward.log"),
  });
  await forward.untilPrinted(/->/);
  return {
    port,
    pieces: [server.child, agent.child, forward],
    async stop() {
      await forward.stop("SIGKILL");
      await stopTunnel(server, agent);
    },
  };
}

async function startFrp(
  workspace: Workspace,
  target: string,
): Promise<ForwardedPort> {
  const port = freePort();
  const pieces = await startFrpPair(workspace, {
    ...{ type: "udp", target, port, host: "127.0.0.1" },
  });
  const [server, client] = pieces;
  await server!.untilPrinted(/started successfully/);
  await client!.untilPrinted(/start proxy success/);
  const stop = async () => {
    await Promise.all(pieces.map((piece) => piece.stop("SIGKILL")));
  };
  return { port, pieces, stop };
}

function datagrams(
  title: string,
  rate: Figure,
  words: readonly string[],
): Metric {
  return {
    title,
    contenders: ["ours", "frp"],
    isOnRequest: true,
    figures: [rate, less("lost_at_half", "lost at half", "", { limit: 0 })],
    async run({ name, site: { workspace } }, { isQuick }) {
      const target = `127.0.0.1:${freePort()}`;
      const { port, pieces, stop } = name === "frp"
        ? await startFrp(workspace, target)
        : await startOurs(workspace, target);
      try {
        return await generate({
          ...{ workspace, program: "linegen", pieces },
          flags: [
            ...["udp", `-target=${target}`, `-addr=127.0.0.1:${port}`],
            ...[...words, `-d=${isQuick ? 2 : 4}s`],
          ],
        });
      } finally {
        await stop();
      }
    },
  };
}

export const FORWARD_METRICS: Readonly<Record<string, Metric>> = {
  "udp-echo": datagrams(
    "UDP, 64 B there and back, 8 callers with 8 under way each",
    more("per_s", "answers", "/s", { bars: { F: 1.2 } }),
    ["-kind=echo", "-size=64"],
  ),
  "udp-oneway": datagrams(
    "UDP, 1,200 B one way, 8 callers",
    more("mbit", "speed", "Mbit/s", { bars: { F: 1.2 } }),
    ["-kind=oneway", "-size=1200"],
  ),
};

/**
 * Datagrams through the tunnel: how many per second, and whether all arrive at
 * half of that. Ours enter at `tunnel forward --udp`, frp's at a udp proxy.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../peers/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  ourCommand,
  startAgent,
  startServer,
  stopTunnel,
} from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { generate, type Sample } from "../generator.ts";
import type { Figure, Metric, Scale } from "../metric.ts";

const LOST_AT_HALF: Figure = {
  key: "lost_at_half",
  title: "lost at half",
  unit: "",
  better: "less",
  limit: 0,
};

/** A tunnel for datagrams. */
interface DatagramTunnel {
  /** The port that leads to the target. */
  readonly port: number;
  readonly pieces: readonly Child[];
  stop(): Promise<void>;
}

function datagrams(
  title: string,
  rate: Figure,
  load: (scale: Scale) => readonly string[],
): Metric {
  return {
    title,
    contenders: ["ours", "frp"],
    isOnRequest: true,
    figures: [
      { ...rate, bars: { F: 1.2 }, moonshots: { F: 2 } },
      LOST_AT_HALF,
    ],
    async run({ name, site: { workspace } }, scale): Promise<Sample> {
      const target = `127.0.0.1:${freePort()}`;
      const tunnel = name === "frp"
        ? await startFrp(workspace, target)
        : await startOurs(workspace, target);
      try {
        return await generate({
          workspace,
          program: "linegen",
          flags: [
            ...["udp", `-target=${target}`, `-addr=127.0.0.1:${tunnel.port}`],
            ...load(scale),
          ],
          pieces: tunnel.pieces,
        });
      } finally {
        await tunnel.stop();
      }
    },
  };
}

export const UDP_ECHO: Metric = datagrams(
  "UDP, 64 B there and back, 8 callers with 8 under way each",
  { key: "per_s", title: "answers", unit: "/s", better: "more" },
  ({ isQuick }) => ["-kind=echo", "-size=64", `-d=${isQuick ? 2 : 4}s`],
);

export const UDP_ONE_WAY: Metric = datagrams(
  "UDP, 1,200 B one way, 8 callers",
  { key: "mbit", title: "speed", unit: "Mbit/s", better: "more" },
  ({ isQuick }) => ["-kind=oneway", "-size=1200", `-d=${isQuick ? 2 : 4}s`],
);

async function startOurs(
  workspace: Workspace,
  target: string,
): Promise<DatagramTunnel> {
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "auto",
    transport: "uds",
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
): Promise<DatagramTunnel> {
  const serverFile = workspace.path("frps.toml");
  const clientFile = workspace.path("frpc.toml");
  const [bindPort, port] = [freePort(), freePort()];
  const [host, targetPort] = target.split(":");
  await Deno.writeTextFile(
    serverFile,
    `bindAddr = "127.0.0.1"\nbindPort = ${bindPort}\n`,
  );
  await Deno.writeTextFile(
    clientFile,
    `serverAddr = "127.0.0.1"\nserverPort = ${bindPort}\n` +
      '[[proxies]]\nname = "u"\ntype = "udp"\n' +
      `localIP = "${host}"\nlocalPort = ${targetPort}\nremotePort = ${port}\n`,
  );
  const start = async (program: "frps" | "frpc", file: string) =>
    new Child({
      name: program,
      command: [await findPeer(program), "-c", file],
      logFile: workspace.path(`${program}.log`),
    });
  // One after the other: a client that is too early waits for many seconds.
  const server = await start("frps", serverFile);
  await server.untilPrinted(/started successfully/);
  const client = await start("frpc", clientFile);
  await client.untilPrinted(/start proxy success/);
  return {
    port,
    pieces: [server, client],
    async stop() {
      await Promise.all([server.stop("SIGKILL"), client.stop("SIGKILL")]);
    },
  };
}

/**
 * Through `tunnel forward`: callers that speak first, and beside them callers
 * that listen first, as those of SSH, SMTP and MySQL do. Both are to cost the
 * same; who listens may cost a timer.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  ourCommand,
  startAgent,
  startServer,
  stopTunnel,
} from "../../../tests/support/program/tunnel.ts";
import { generate } from "../generator.ts";
import type { Figure, Metric, Scale } from "../metric.ts";

/** Longer than `tunnel forward` waits for a caller's first bytes. */
const LISTENED_MS = 10;

const CPU_PER_GB: Figure = {
  key: "cpu_s_per_GB",
  title: "CPU",
  unit: "s/GB",
  better: "less",
};

const CPU_PER_CONNECTION: Figure = {
  key: "cpu_ms_per_1k",
  title: "CPU",
  unit: "ms/1k",
  better: "less",
};

function forwarded(
  title: string,
  figure: Figure,
  load: (scale: Scale) => readonly string[],
): Metric {
  return {
    title,
    contenders: ["ours"],
    isOnRequest: true,
    figures: [figure],
    async run({ site: { workspace, target } }, scale) {
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
          ...ourCommand("forward", `127.0.0.1:${port}:${target}`),
          `--server=unix:${server.frontend.path}`,
        ],
        logFile: workspace.path("forward.log"),
      });
      const pieces = [server.child, agent.child, forward];
      try {
        await forward.untilPrinted(/->/);
        return await generate({
          workspace,
          pieces,
          flags: [
            `-addr=127.0.0.1:${port}`,
            `-pids=${pieces.map(({ pid }) => pid).join(",")}`,
            ...load(scale),
          ],
        });
      } finally {
        await forward.stop("SIGKILL");
        await stopTunnel(server, agent);
      }
    },
  };
}

const listens = `-listen=${LISTENED_MS}ms`;
const bulk = ({ bulkGb }: Scale) => ["-mode=down", "-n=4", `-gb=${bulkGb}`];
const dials = ({ seconds }: Scale) => ["-mode=conn", "-n=64", `-d=${seconds}s`];

export const FORWARDED_METRICS: Readonly<Record<string, Metric>> = {
  "forward-down": forwarded(
    "bytes through a forwarded port, callers that speak first",
    CPU_PER_GB,
    bulk,
  ),
  "forward-down-listening": forwarded(
    "bytes through a forwarded port, callers that listen first",
    CPU_PER_GB,
    (scale) => [...bulk(scale), listens],
  ),
  "forward-conn": forwarded(
    "connections through a forwarded port, callers that speak first",
    CPU_PER_CONNECTION,
    dials,
  ),
  "forward-conn-listening": forwarded(
    "connections through a forwarded port, callers that listen first",
    CPU_PER_CONNECTION,
    (scale) => [...dials(scale), listens],
  ),
};

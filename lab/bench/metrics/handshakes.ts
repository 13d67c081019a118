/**
 * Agents that connect: TLS handshakes with certificates on the agent port, up
 * to the server's first byte, none of them resumed.
 *
 * @module
 */

import { startServer } from "../../../tests/support/program/tunnel.ts";
import { generate } from "../generator.ts";
import type { Metric } from "../metric.ts";
import { usageOf } from "../../../tests/support/program/processes.ts";

/** Enough for V8's compilers. */
const WARM_UP = "2s";

export const HANDSHAKE_METRICS: Readonly<Record<string, Metric>> = {
  handshakes: {
    title: "mutual TLS handshakes on the agent port",
    contenders: ["ours", "konnectivity"],
    figures: [
      {
        key: "per_s",
        title: "handshakes",
        unit: "/s",
        better: "more",
        bars: { K: 0.5 },
      },
      { key: "cpu_ms_each", title: "server's CPU", unit: "ms", better: "less" },
    ],
    run: async ({ name, workspace }, scale) => {
      const server = await startServer(workspace, {
        maker: name === "konnectivity" ? "konnectivity" : "ours",
        mode: "grpc",
        transport: "uds",
      });
      try {
        const { ca, agent } = workspace.certificates;
        const shake = (duration: string) =>
          generate({
            workspace,
            program: "linegen",
            flags: [
              "handshakes",
              `-to=${server.agentHost}:${server.agentPort}`,
              `-tls=${ca},${agent.cert},${agent.key}`,
              `-d=${duration}`,
            ],
            pieces: [server.child],
          });
        await shake(WARM_UP);
        const before = await usageOf(server.child.pid);
        const sample = await shake(`${scale.seconds}s`);
        const after = await usageOf(server.child.pid);
        const cpuMs = (after.cpuSeconds - before.cpuSeconds) * 1_000;
        return { ...sample, cpu_ms_each: cpuMs / sample["count"]! };
      } finally {
        await server.child.stop("SIGKILL");
      }
    },
  },
};

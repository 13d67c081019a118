/**
 * Datagrams through `tunnel forward --udp`, beside frp's udp proxy.
 *
 * @module
 */

import { freePort } from "../../tests/support/program/ports.ts";
import { generate } from "./generator.ts";
import { type Figure, less, type Metric, more } from "./metric.ts";
import { startTunnel } from "./tunnels/start_tunnel.ts";

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
    async run({ name, site }, { isQuick }) {
      const { workspace } = site;
      const target = `127.0.0.1:${freePort()}`;
      const { flags, pieces, stop } = await startTunnel(
        name,
        { ...site, target },
        { route: name === "ours" ? "forward" : "port", protocol: "udp" },
      );
      try {
        return await generate({
          ...{ workspace, program: "linegen", pieces },
          flags: [
            ...["udp", `-target=${target}`, ...flags, ...words],
            `-d=${isQuick ? 2 : 4}s`,
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

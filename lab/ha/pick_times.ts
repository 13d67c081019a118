/**
 * How long a server needs to choose an agent, among so many.
 *
 * @module
 */

import { Registry } from "../../server/routing/registry.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { quantile } from "./bars.ts";

const PICKS = 200_000;

/** Before that the code is not compiled. */
const WARM_UP = 20_000;

/** In microseconds. */
export interface PickTimes {
  readonly p50Us: number;
  readonly p99Us: number;
}

/** Chooses by name, by address and among all, in turn. */
export function measurePicks(agents: number): PickTimes {
  const registry = new Registry({
    strategies: ["destHost", "cidr", "default"],
    clock: performance,
    random: Math.random,
  });
  for (let at = 0; at < agents; at++) {
    const net = `10.${at >> 8}.${at & 255}`;
    registry.add(
      new FakeLink(`agent-${at}`, {
        host: [`node-${at}`],
        ipv4: [`${net}.1`],
        cidr: [`${net}.0/24`],
      }),
    );
  }
  const times: number[] = [];
  for (let pick = 0; pick < PICKS; pick++) {
    const at = Math.floor(Math.random() * agents);
    const net = `10.${at >> 8}.${at & 255}`;
    const [address, node] = [
      [`node-${at}:80`],
      [`${net}.77:80`],
      ["elsewhere:80"],
      ["127.0.0.1:80", `node-${at}`],
    ][pick % 4]!;
    const startMs = performance.now();
    registry.pick({ protocol: "tcp", address: address! }, node);
    const tookMs = performance.now() - startMs;
    if (pick >= WARM_UP) times.push(tookMs * 1000);
  }
  return { p50Us: quantile(times, 0.5), p99Us: quantile(times, 0.99) };
}

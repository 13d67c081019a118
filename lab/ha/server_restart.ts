/**
 * A server is killed, and started again three seconds later: how long after it
 * listens the first request is good.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import { grade, quantile } from "./bars.ts";
import { dialOnce } from "./connect_caller.ts";
import { type HaStage, NODES } from "./ha_stage.ts";

const ROUNDS = 6;
const DOWN_MS = 3_000;
const BAR_MS = 150;
const TIMEOUT_MS = 30_000;

/** Between two tries: more of them would be a load of their own. */
const TRY_MS = 10;

/** See the module description. */
export async function measureServerRestart(
  stage: HaStage,
  tally: Tally,
): Promise<void> {
  const server = stage.servers[0]!;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await server.stop("SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, DOWN_MS));
    const starting = server.start();
    times.push(await firstGood(stage, server.socket, `node-${round % NODES}`));
    await starting;
    await stage.untilWhole();
  }
  const median = quantile(times, 0.5);
  const name = "first good request after a server listens again, median";
  grade(tally, { name, seen: median, unit: "ms", most: BAR_MS });
  const all = times.map((ms) => ms.toFixed(0)).join(", ");
  tally.note(`     of ${ROUNDS}: ${all} ms; it was down for ${DOWN_MS} ms`);
}

/** @returns Milliseconds from the first answer of any kind to a good one. */
async function firstGood(
  { target }: HaStage,
  path: string,
  node: string,
): Promise<number> {
  const deadlineMs = performance.now() + TIMEOUT_MS;
  let listensMs: number | undefined;
  for (;;) {
    const beganMs = performance.now();
    const { status, text } = await dialOnce({ path, target, node });
    if (status !== 0) listensMs ??= beganMs;
    if (status === 200) return performance.now() - listensMs!;
    if (performance.now() > deadlineMs) throw new Error(`no request: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, TRY_MS));
  }
}

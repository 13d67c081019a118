/**
 * An agent is killed and started again: how long it takes from its first line to
 * its first link, and to a good request.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import type { Child } from "../../tests/support/program/child.ts";
import { grade, quantile } from "./bars.ts";
import type { HaStage } from "./ha_stage.ts";

const ROUNDS = 8;
const BAR_MS = 60;

/** See the module description. */
export async function measureAgentRestart(
  stage: HaStage,
  tally: Tally,
): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const agent = stage.agents[round]!;
    await agent.child.stop("SIGKILL");
    agent.start();
    times.push(await firstLink(agent.child));
    await stage.untilWhole();
  }
  const seen = quantile(times, 0.5);
  const name = "agent ready after it runs, median";
  grade(tally, { name, seen, unit: "ms", most: BAR_MS });
  const all = times.map((ms) => ms.toFixed(0)).join(", ");
  tally.note(`     of ${ROUNDS}: ${all} ms`);
}

/** By the times in its log. */
async function firstLink(child: Child): Promise<number> {
  await child.untilPrinted(/linked to server/);
  const log = await Deno.readTextFile(child.logFile);
  const timeOf = (words: RegExp) => {
    const line = log.split("\n").find((one) => words.test(one)) ?? "";
    const [time = ""] = /\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(line) ?? [];
    return Date.parse(time);
  };
  return timeOf(/linked to server/) - timeOf(/agent started/);
}

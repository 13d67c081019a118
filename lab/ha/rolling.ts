/**
 * Every server and some agents are ended in order and started again, one after
 * the other, under load: no dial fails.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import { grade } from "./bars.ts";
import { HaLoad } from "./ha_load.ts";
import type { HaStage } from "./ha_stage.ts";

/** Both agents of one node, and one of another. */
const AGENTS = [3, 13, 4];

/** What began before an end, and shows only behind it. */
const AFTER_MS = 1_000;

/** See the module description. */
export async function measureRolling(
  stage: HaStage,
  tally: Tally,
): Promise<void> {
  const load = new HaLoad(stage);
  try {
    for (const server of stage.servers) {
      await server.stop("SIGTERM");
      await server.start();
      await stage.untilWhole();
    }
    await report(load, tally, "all servers are restarted");
    for (const at of AGENTS) {
      const agent = stage.agents[at]!;
      await agent.child.stop("SIGTERM");
      agent.start();
      await stage.untilWhole();
    }
    await report(load, tally, "agents are restarted");
  } finally {
    await load.stop();
  }
}

async function report(
  load: HaLoad,
  tally: Tally,
  what: string,
): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, AFTER_MS));
  const { dials, failed, slowestMs, cut } = load.take();
  const name = `failed dials while ${what} one after the other`;
  grade(tally, { name, seen: failed.length, unit: "", most: 0 });
  tally.note(
    `     ${dials} dials, slowest ${slowestMs.toFixed(0)} ms, ` +
      `${cut} connections cut`,
  );
  for (const reason of new Set(failed)) tally.note(`     ${reason}`);
}

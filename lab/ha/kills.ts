/**
 * Any one process is killed under load: dials to nodes that have another link
 * do not fail.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import { grade } from "./bars.ts";
import { HaLoad } from "./ha_load.ts";
import type { HaStage } from "./ha_stage.ts";

/** Longer than a server or an agent needs to be found dead by PINGs alone. */
const WATCHED_MS = 11_000;

/** Agents that are killed; each is one of two on its node. */
const VICTIMS = [5, 12];

/** Kills each server and some agents, one after the other. */
export async function measureKills(
  stage: HaStage,
  tally: Tally,
): Promise<void> {
  const load = new HaLoad(stage);
  try {
    await sleep(1_000);
    const calm = load.take();
    tally.note(`     without a kill: ${textOf(calm)}`);
    for (const server of stage.servers) {
      await server.stop("SIGKILL");
      await watch(load, tally, `server ${server.serverId}`);
      await server.start();
      await stage.untilWhole();
      load.take();
    }
    for (const at of VICTIMS) {
      const agent = stage.agents[at]!;
      agent.child.signal("SIGKILL");
      await watch(load, tally, `agent ${at}`);
      agent.start();
      await stage.untilWhole();
      load.take();
    }
  } finally {
    await load.stop();
  }
}

async function watch(
  load: HaLoad,
  tally: Tally,
  what: string,
): Promise<void> {
  await sleep(WATCHED_MS);
  const seen = load.take();
  const name = `failed dials when ${what} is killed`;
  grade(tally, { name, seen: seen.failed.length, unit: "", most: 0 });
  tally.note(`     ${textOf(seen)}`);
  for (const reason of new Set(seen.failed)) tally.note(`     ${reason}`);
  if (seen.wrong > 0) tally.fail("bytes that came back", `${seen.wrong} wrong`);
}

function textOf(
  { dials, failed, cut, slowestMs }: ReturnType<HaLoad["take"]>,
): string {
  return `${dials} dials, ${failed.length} failed, slowest ` +
    `${slowestMs.toFixed(0)} ms, ${cut} connections cut`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Two hundred agents whose server is killed and comes back: how soon all are
 * there again, and for how long a core has nothing left meanwhile.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";
import { usageOf } from "../../tests/support/program/processes.ts";
import type { Child } from "../../tests/support/program/child.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ServerProcess } from "../../tests/support/rigs/server_process.ts";
import { grade } from "./bars.ts";
import { crowdLine, startCrowd } from "./crowd.ts";

const AGENTS = 200;
const LINKS = 2;
const ROUNDS = 3;
const DOWN_MS = 3_000;
const BACK_MS = 3_000;
const TIMEOUT_MS = 60_000;

/** A core counts as busy above this part of it. */
const BUSY_SHARE = 0.8;
const BUSY_MS = 2_000;
const LOOK_MS = 100;

/** See the module description. */
export async function measureCrowd(
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  const server = new ServerProcess(workspace, "crowded");
  await server.start();
  const crowd = startCrowd(workspace, {
    first: 0,
    count: AGENTS,
    links: LINKS,
    servers: [server.address],
  });
  await untilLinks(crowd, AGENTS * LINKS);
  for (let round = 0; round < ROUNDS; round++) {
    await server.stop("SIGKILL");
    await untilLinks(crowd, 0);
    await new Promise((resolve) => setTimeout(resolve, DOWN_MS));
    await server.start();
    const startMs = Date.now();
    const busy = new BusyTimes([server.child, crowd]);
    const backMs = await untilLinks(crowd, AGENTS * LINKS, "linked") - startMs;
    await untilLinks(crowd, AGENTS * LINKS);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const busyMs = await busy.stop();
    grade(tally, {
      name: `${AGENTS} agents are back`,
      ...{ seen: backMs, unit: "ms", most: BACK_MS },
    });
    grade(tally, {
      name: "a process has a core for itself meanwhile",
      ...{ seen: busyMs, unit: "ms", most: BUSY_MS },
    });
  }
}

async function untilLinks(
  crowd: Child,
  links: number,
  what: "links" | "linked" = "links",
): Promise<number> {
  const wanted = what === "linked" ? links / LINKS : links;
  const deadlineMs = Date.now() + TIMEOUT_MS;
  for (;;) {
    const line = await crowdLine(crowd);
    if (line?.[what] === wanted) return line.atMs;
    if (crowd.hasEnded || Date.now() > deadlineMs) {
      throw new Error(`not ${wanted} ${what}: ${await crowd.logTail()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The longest time in a row in which one of some processes had most of a core. */
class BusyTimes {
  readonly #over: Promise<void>;
  #isOver = false;
  #longestMs = 0;

  constructor(private readonly children: readonly Child[]) {
    this.#over = Promise.all(children.map((child) => this.#watch(child)))
      .then(() => {});
  }

  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#over;
    return this.#longestMs;
  }

  async #watch({ pid }: Child): Promise<void> {
    let [atMs, cpuS] = [performance.now(), (await usageOf(pid)).cpuSeconds];
    let busyMs = 0;
    while (!this.#isOver) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const [nowMs, now] = [performance.now(), await usageOf(pid)];
      const share = (now.cpuSeconds - cpuS) * 1000 / (nowMs - atMs);
      busyMs = share > BUSY_SHARE ? busyMs + nowMs - atMs : 0;
      this.#longestMs = Math.max(this.#longestMs, busyMs);
      [atMs, cpuS] = [nowMs, now.cpuSeconds];
    }
  }
}

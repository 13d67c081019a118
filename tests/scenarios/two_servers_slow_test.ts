/**
 * Several servers, as processes that come and go: every address is linked, and
 * who comes back is linked again at once.
 *
 * @module
 */

import { assert } from "@std/assert";
import { Workspace } from "../support/program/workspace.ts";
import { Processes, type ServerProcess } from "../support/rigs/processes.ts";
import { patience } from "../support/watch/patience.ts";

/** What the bar allows between a server that listens and its agent. */
const RELINK_MS = 2_000;

async function open(ids: readonly string[], count: number): Promise<Processes> {
  const rig = new Processes(await Workspace.make());
  for (const id of ids) rig.addServer(id, `--server-count=${count}`);
  await Promise.all(rig.servers.map((server) => server.start()));
  return rig;
}

for (const count of [1, 2]) {
  Deno.test(`a server that was away is linked again, count ${count}`, async () => {
    await using rig = await open(["s1", "s2"], count);
    const [one, other] = rig.servers as [ServerProcess, ServerProcess];
    rig.agentAt([one.address, other.address]);
    await Promise.all(rig.servers.map((server) => server.untilLinked()));
    for (const awayMs of count === 1 ? [3_000] : [3_000, 30_000]) {
      await other.stop("SIGTERM");
      await new Promise((resolve) => setTimeout(resolve, awayMs));
      await other.start();
      const tookMs = await other.untilLinked();
      assert(tookMs <= patience(RELINK_MS), `away ${awayMs} ms: ${tookMs} ms`);
    }
    // Both at once.
    await Promise.all(rig.servers.map((server) => server.stop("SIGKILL")));
    await Promise.all(rig.servers.map((server) => server.start()));
    for (const server of rig.servers) {
      const tookMs = await server.untilLinked();
      assert(tookMs <= patience(RELINK_MS), `both away: ${tookMs} ms`);
    }
  });
}

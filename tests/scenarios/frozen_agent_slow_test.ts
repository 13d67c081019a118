/**
 * Agents that stand still, as processes do whose machine has other cares.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { patience } from "../support/watch/patience.ts";

/** As users have it: `untilPrinted` sees links come and go. */
const LOG = { serverFlags: ["--v=2"] };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** How often the server has written a line. */
async function count({ server }: TunnelProcesses, line: string) {
  const log = await Deno.readTextFile(server.child.logFile);
  return log.split(line).length - 1;
}

Deno.test("an agent that stands still is found within ten seconds, and not for five", async () => {
  await using tunnel = await TunnelProcesses.start(LOG);
  const { child } = tunnel.agent;
  child.signal("SIGSTOP");
  await pause(5_000);
  child.signal("SIGCONT");
  await tunnel.connect("grpc");
  assertEquals(await count(tunnel, "agent gone"), 0);
  const startMs = performance.now();
  child.signal("SIGSTOP");
  await tunnel.server.child.untilPrinted(/agent gone.*no answer to PING/);
  const tookMs = performance.now() - startMs;
  child.signal("SIGCONT");
  assert(tookMs <= 10_000 + patience(500), `${tookMs} ms`);
});

Deno.test("beside an agent that stands still no dial waits for it", async () => {
  await using tunnel = await TunnelProcesses.start(LOG);
  const frozen = await tunnel.addAgent("ours", ["--agent-id=frozen"]);
  frozen.child.signal("SIGSTOP");
  let slowestMs = 0;
  for (let round = 0; round < 30; round++) {
    const startMs = performance.now();
    const { caller } = await tunnel.connect("grpc");
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    caller.reset("done");
  }
  frozen.child.signal("SIGCONT");
  assert(slowestMs > 900, "some were for the one that stands still");
  assert(slowestMs < patience(2_500), `${slowestMs} ms`);
});

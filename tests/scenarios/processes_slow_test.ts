/**
 * What only processes show: signals, exit codes, descriptors.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { SilentTarget } from "../support/peers/probe_target.ts";
import { eventually, metricAt } from "../support/rigs/tunnel_harness.ts";
import {
  openDescriptors,
  TunnelProcesses,
} from "../support/rigs/tunnel_processes.ts";
import { patience } from "../support/watch/patience.ts";

const SERVER = "konnectivity_network_proxy_server_";

for (const who of ["agent", "server"] as const) {
  for (const isSecondSent of [false, true]) {
    const when = isSecondSent ? "on the second SIGTERM" : "at its timeout";
    Deno.test(`${who} that carries something ends ${when}`, async () => {
      const timeout = { agent: "drain", server: "graceful-shutdown" }[who];
      await using tunnel = await TunnelProcesses.start({
        [`${who}Flags`]: isSecondSent ? ["--v=1"] : [`--${timeout}-timeout=1s`],
      });
      const { child } = tunnel[who];
      const { caller } = await tunnel.connect("grpc");
      child.signal("SIGTERM");
      if (isSecondSent) {
        await child.untilPrinted(/SIGTERM: draining/);
        assertEquals(child.hasEnded, false);
        child.signal("SIGTERM");
      }
      const askedMs = performance.now();
      assertEquals((await child.ended).code, 0);
      assert(performance.now() - askedMs < patience(3_000));
      assertEquals((await caller.closed).kind, "lost");
    });
  }
}

Deno.test("a --config file is followed, and SIGHUP says what came of each file", async () => {
  const folder = await Deno.makeTempDir();
  const config = `${folder}/agent.yaml`;
  await Deno.writeTextFile(config, "");
  {
    await using tunnel = await TunnelProcesses.start({
      agentFlags: [`--config=${config}`, "--v=1"],
    });
    const { child } = tunnel.agent;
    const before = await tunnel.connect("grpc");
    await Deno.writeTextFile(config, "deny: tcp:*:*");
    await child.untilPrinted(/config: taken over: --deny$/m);
    const error = await tunnel.connect("grpc").catch((error) => error);
    assertMatch(String(error), /refused by the agent's rule --deny/);
    await Deno.writeTextFile(config, "deny: nonsense");
    await child.untilPrinted(/ERROR Cannot use .*agent.yaml.*stays in use/);
    child.signal("SIGHUP");
    await child.untilPrinted(/server-link: read again, nothing has changed/);
    before.caller.send("still here");
    await before.target.received(10);
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("cancelled dials and killed callers leave no descriptor behind", async () => {
  await using tunnel = await TunnelProcesses.start();
  const pids = [tunnel.server.child.pid, tunnel.agent.child.pid];
  const health = tunnel.server.healthUrl.slice("http://".length);
  const silent = await SilentTarget.open();
  const round = async () => {
    const abort = new AbortController();
    const target = { protocol: "tcp", address: silent.address };
    const { signal } = abort;
    const dials = Array.from(
      { length: 50 },
      (_, index) =>
        tunnel.dial(index % 2 === 0 ? "grpc" : "http-connect", {
          target,
          signal,
        })
          .catch(() => {}),
    );
    await eventually(
      "50 dials are under way",
      async () =>
        await metricAt(health, `${SERVER}pending_backend_dials`) === 50,
    );
    abort.abort();
    await Promise.all(dials);
    for (const protocol of ["grpc", "http-connect"] as const) {
      const { caller, target } = await tunnel.connect(protocol);
      caller.send("hello");
      await target.received(5);
      caller.reset("killed");
      target.reset("killed");
      await target.closed;
    }
  };
  // Pools and caches fill in the first one.
  await round();
  let before: number[] = [];
  await eventually("the first round is over", () => {
    const now = pids.map(openDescriptors);
    const isSame = now.join() === before.join();
    before = now;
    return isSame;
  });
  await round();
  await round();
  await eventually(
    `as many descriptors as before: ${before}`,
    () => pids.every((pid, index) => openDescriptors(pid) <= before[index]!),
  );
  await eventually("the server counts them, too", async () => {
    // The one of this question may be there.
    const counted = await metricAt(health, "process_open_fds");
    return Math.abs(counted - openDescriptors(pids[0]!)) <= 1;
  });
  silent.close();
});

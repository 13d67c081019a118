/**
 * A process that is profiled in the field: with the permissions of the packaged
 * program, on its admin port.
 *
 * @module
 */

import { Processes } from "../support/rigs/processes.ts";
import { assert, assertEquals } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { Workspace } from "../support/program/workspace.ts";

Deno.test("an agent is profiled on its admin port, and only when that is wanted", async () => {
  await using programs = new Processes(await Workspace.make());
  const port = freePort();
  const debug = `http://127.0.0.1:${port}/debug/pprof`;
  // Its server is away, which is nothing to a profile.
  const start = async (...flags: readonly string[]) => {
    const admin = `--admin-server-port=${port}`;
    const agent = programs.agentAt(["127.0.0.1:1"], admin, ...flags);
    await agent.untilPrinted(/agent started/);
    return agent;
  };
  const silent = await start();
  const refused = await fetch(`${debug}/profile?seconds=1`);
  assertEquals(refused.status, 404);
  await refused.body?.cancel();
  await silent.stop("SIGKILL");
  await start("--enable-profiling");
  const profile = await (await fetch(`${debug}/profile?seconds=1`)).json();
  assert(profile.nodes.length > 1);
  assert(profile.samples.length > 100);
  const path = (await (await fetch(`${debug}/heap`)).text()).trim();
  const { size, mode } = await Deno.stat(path);
  assertEquals(mode! & 0o777, 0o600);
  assert(size > 1_000_000, `${size}`);
  await Deno.remove(path);
});

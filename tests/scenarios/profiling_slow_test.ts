/**
 * A process that is profiled in the field: with the permissions of the packaged
 * program, on its admin port.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { Child } from "../support/program/child.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";

/** An agent whose server is away, which is nothing to a profile. */
async function startAgent(
  workspace: Workspace,
  adminPort: number,
  ...flags: string[]
): Promise<Child> {
  const { ca, agent } = workspace.certificates;
  const child = new Child({
    name: "our agent",
    command: [
      ...ourCommand("agent"),
      ...["--proxy-server-host=127.0.0.1", "--proxy-server-port=1"],
      ...[`--ca-cert=${ca}`, `--agent-cert=${agent.cert}`],
      ...[`--agent-key=${agent.key}`, "--health-server-port=0"],
      ...[`--admin-server-port=${adminPort}`, ...flags],
    ],
    logFile: workspace.path("agent.log"),
  });
  await child.untilPrinted(/agent started/);
  return child;
}

Deno.test("an agent is profiled on its admin port, and only when that is wanted", async () => {
  const workspace = await Workspace.make();
  const port = freePort();
  const debug = `http://127.0.0.1:${port}/debug/pprof`;
  const silent = await startAgent(workspace, port);
  const refused = await fetch(`${debug}/profile?seconds=1`);
  assertEquals(refused.status, 404);
  await refused.body?.cancel();
  await silent.stop("SIGKILL");

  const agent = await startAgent(workspace, port, "--enable-profiling");
  const profile = await (await fetch(`${debug}/profile?seconds=1`)).json();
  assert(profile.nodes.length > 1);
  assert(profile.samples.length > 100);
  const path = (await (await fetch(`${debug}/heap`)).text()).trim();
  const { size, mode } = await Deno.stat(path);
  assertEquals(mode! & 0o777, 0o600);
  assert(size > 1_000_000, `${size}`);
  await Deno.remove(path);
  await agent.stop("SIGKILL");
  await workspace.remove();
});

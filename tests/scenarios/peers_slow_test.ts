/**
 * Servers that know of each other, as processes: an agent that is given one
 * address, a balancer's that sends everybody to one of them, links them all.
 *
 * @module
 */

import { assert } from "@std/assert";
import { portOf } from "../../proto/peer/host_port.ts";
import { freePort } from "../support/program/ports.ts";
import { Workspace } from "../support/program/workspace.ts";
import {
  MeetingServers,
  serversComeAndGo,
} from "../support/rigs/meeting_servers.ts";
import { again, StateServers } from "../support/rigs/state_servers.ts";

Deno.test("an agent links servers that meet in a directory, as they come and go", async () => {
  await using rig = await MeetingServers.open();
  await serversComeAndGo(rig);
});

Deno.test("a joined node finds the other servers after a restart, though the one it knows is gone", async () => {
  const workspace = await Workspace.make();
  await using at = new StateServers(workspace, [
    `--state=${workspace.path("state")}`,
  ]);
  const start = async () => {
    const address = `127.0.0.1:${freePort()}`;
    const { child } = await at.start(
      undefined,
      `--agent-port=${portOf(address)}`,
      `--advertise-address=${address}`,
      "--handover-socket=none",
    );
    return { child, address };
  };
  const [one, two] = [await start(), await start()];
  const { folder, success, stderr } = await at.join(
    "edge-1",
    await at.token(),
    one,
  );
  assert(success, stderr);
  const agent = await at.link(folder, one);
  await agent.untilPrinted(again(/linked to server/));
  await agent.stop("SIGTERM");
  await one.child.stop("SIGKILL");
  const restarted = await at.link(folder, one);
  await restarted.untilPrinted(
    new RegExp(`linked to server.*${two.address.replaceAll(".", "\\.")}`),
  );
  await at[Symbol.asyncDispose]();
  await workspace.remove();
});

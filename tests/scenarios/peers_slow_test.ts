/**
 * Servers that know of each other, as processes: an agent that is given one
 * address, a balancer's that sends everybody to one of them, links them all.
 *
 * @module
 */

import { assert } from "@std/assert";
import {
  LINKED_MS,
  MeetingServers,
  serversComeAndGo,
} from "../support/rigs/meeting_servers.ts";

Deno.test("an agent links servers that meet in a directory, as they come and go", async () => {
  await using rig = await MeetingServers.open();
  await serversComeAndGo(rig);
});

Deno.test("an agent links servers of a list, and a restarted one at once", async () => {
  await using rig = await MeetingServers.open();
  for (const id of ["s1", "s2", "s3"]) rig.add(id, []);
  const list = rig.servers.map(({ serverId, address }) =>
    `${serverId}=${address}`
  );
  for (const server of rig.servers) {
    server.addFlags(
      `--peers=${list.join(",")}`,
      `--advertise-address=${server.address}`,
    );
  }
  await Promise.all(rig.servers.map((server) => server.start()));
  rig.balancer.add(rig.servers[0]!.agentPort);
  rig.startAgent();
  await Promise.all(rig.servers.map((server) => server.untilLinked()));
  await rig.servers[0]!.stop("SIGKILL");
  await rig.servers[0]!.start();
  assert(await rig.servers[0]!.untilLinked() <= LINKED_MS);
});

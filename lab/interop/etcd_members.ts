/**
 * Servers that meet in a real etcd.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { EtcdEphemerals } from "../../neighbours/store/etcd_place.ts";
import { EphemeralTexts } from "../../neighbours/store/ephemerals.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import {
  MeetingServers,
  serversComeAndGo,
} from "../../tests/support/rigs/meeting_servers.ts";
import { clientOf, type EtcdCases } from "./etcd_case.ts";
import { eventually } from "./kube_case.ts";
import {
  membersMeet,
  type OpenMember,
  TestMember,
  TIMEOUT_MS,
} from "../../tests/support/rigs/test_member.ts";

function openerOf(cluster: EtcdCluster, prefix: string): OpenMember {
  return (who) => {
    const client = clientOf(cluster);
    const options = { ...who, timeoutMs: TIMEOUT_MS, timers: systemTimers };
    const place = new EtcdEphemerals({
      ...options,
      client,
      prefix,
      random: Math.random,
    });
    const ephemerals = new EphemeralTexts(place, options);
    return { ephemerals, cut: () => client[Symbol.dispose]() };
  };
}

export const ETCD_MEMBER_CASES: EtcdCases = {
  "an agent links servers that meet in etcd, as they come and go": async (
    { cluster },
  ) => {
    const [url] = cluster.urls;
    await using rig = await MeetingServers.open([
      `--state=etcd://${new URL(url!).host}/come-and-go/`,
      "--state-key-file=none",
    ]);
    await serversComeAndGo(rig);
  },

  "servers that meet in etcd see each other, their agents and their ends":
    async ({ cluster }) => {
      const prefix = "/members-meet/";
      await membersMeet(openerOf(cluster, prefix));
      await eventually(
        "nothing is left",
        async () => (await cluster.keys(prefix)).length === 0,
      );
    },

  "servers stay known while etcd is away, and when somebody empties it": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace);
    const open = openerOf(cluster, "/away/");
    await using one = new TestMember(open, "one");
    await using two = new TestMember(open, "two");
    await one.sees("two");
    await two.sees("one");
    using client = clientOf(cluster);
    for (const { key } of await cluster.keys("/away/")) {
      await client.delete(key);
    }
    await eventually(
      "both have written themselves again",
      async () => (await cluster.keys("/away/")).length === 2,
    );
    await one.sees("two");
    await two.sees("one");
    const etcd = cluster.members[0]!.child!;
    etcd.signal("SIGSTOP");
    await eventually("that is said", () => one.said.length > 0, 60_000);
    assertEquals([one.others, two.others], ["two", "one"]);
    assertEquals(one.said.length, 1, one.said.join());
    etcd.signal("SIGCONT");
    // Leases may have ended meanwhile; whoever is there writes again.
    await eventually(`it goes on: ${one.said.join()}`, () => {
      assertEquals([one.others, two.others], ["two", "one"]);
      return one.said.at(-1) === "the other servers are followed again";
    });
    for (let looks = 0; looks < 20; looks++) {
      await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS / 20));
      assertEquals([one.others, two.others], ["two", "one"]);
    }
  },
};

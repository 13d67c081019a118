/**
 * Lists and watches of a real etcd, and what may happen to them.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { EtcdClient } from "../../neighbours/etcd/client.ts";
import { bytesOf } from "../../neighbours/etcd/keys.ts";
import {
  memberConnector,
  parseEtcdMember,
} from "../../neighbours/etcd/members.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { CuttableLine } from "../../tests/support/peers/cuttable_line.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  clientOf,
  type EtcdCases,
  type EtcdContext,
  FollowedCopy,
} from "./etcd_case.ts";
import { eventually } from "./kube_case.ts";

/** Of the storms. */
const STORM_CHANGES = 1_500;
const STORM_KEYS = 40;

/** A follower behind a line that can be cut, and the line. */
function behindLine({ cluster }: EtcdContext, prefix: string) {
  const line = new CuttableLine(cluster.members[0]!.port);
  const urls = [`http://127.0.0.1:${line.port}`];
  const copy = new FollowedCopy(clientOf({ urls }), prefix);
  return {
    line,
    copy,
    async [Symbol.asyncDispose]() {
      line.close();
      await copy[Symbol.asyncDispose]();
    },
  };
}

/** Changes that anybody could make, on our client or on the gateway. */
async function storm(
  cluster: EtcdCluster,
  prefix: string,
  prng: Prng,
  changes: number,
): Promise<void> {
  using client = clientOf(cluster);
  for (let i = 0; i < changes; i++) {
    const key = `${prefix}${prng.below(STORM_KEYS)}`;
    const value = `${i}`;
    try {
      switch (prng.below(5)) {
        case 0:
          await client.delete(key);
          break;
        case 1:
          await cluster.put(key, value);
          break;
        case 2:
          await client.txn("change several", {
            compare: [],
            success: [
              { requestPut: { key: bytesOf(key), value: bytesOf(value) } },
              {
                requestDeleteRange: {
                  key: bytesOf(`${prefix}${prng.below(STORM_KEYS)}-`),
                },
              },
              {
                requestPut: {
                  key: bytesOf(`${key}-`),
                  value: bytesOf(value),
                },
              },
            ],
          });
          break;
        default:
          await client.put(key, bytesOf(value));
      }
    } catch {
      // Nobody was there. What was done or not, the copy must say the same.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

export const ETCD_WATCH_CASES: EtcdCases = {
  "what is put and deleted is received in order, by prefix only": async (
    { cluster },
  ) => {
    await cluster.put("/order/before", "1");
    await using copy = new FollowedCopy(clientOf(cluster), "/order/");
    await copy.until("following");
    await cluster.put("/order0", "not of it");
    for (let i = 0; i < 50; i++) await cluster.put("/order/a", `${i}`);
    await cluster.delete("/order/before");
    await cluster.put("/order/last", "1");
    await copy.until("/order/last=1");
    assertEquals(copy.said, [
      "list",
      "following",
      ...Array.from({ length: 50 }, (_, i) => `/order/a=${i}`),
      "-/order/before",
      "/order/last=1",
    ]);
  },

  "a listing of many pages is of one moment": async ({ cluster }) => {
    using client = clientOf(cluster);
    for (let from = 0; from < 2_500; from += 100) {
      await client.txn("write many", {
        compare: [],
        success: Array.from({ length: 100 }, (_, i) => ({
          requestPut: {
            key: bytesOf(`/pages/${from + i}`),
            value: bytesOf("x".repeat(100)),
          },
        })),
      });
    }
    const { entries } = await client.list("/pages/");
    assertEquals(entries.length, 2_500);
    assertEquals(new Set(entries.map(({ key }) => key)).size, 2_500);
  },

  "what piled up while away comes in fragments, whole": async (context) => {
    const { cluster } = context;
    await using at = behindLine(context, "/large/");
    await at.copy.until("following");
    at.line.block("up");
    at.line.cut();
    using client = clientOf(cluster);
    // Each is near etcd's limit on a request and on a message of a watch; one
    // who was away gets them all at once.
    const value = "x".repeat(1_400_000);
    for (let i = 0; i < 4; i++) {
      await client.put(`/large/${i}`, bytesOf(value));
    }
    at.line.unblock("up");
    await eventually("all are there", () => at.copy.keys.size === 4);
    assertEquals(at.copy.lists, 1);
    assertEquals([...at.copy.keys.values()], Array(4).fill(value));
    const { entries } = await client.list("/large/");
    assertEquals(
      entries.map((it) => it.value.length),
      Array(4).fill(1_400_000),
    );
  },

  "a line that is cut costs nothing: the watch goes on where it was": async (
    context,
  ) => {
    const { cluster } = context;
    await using at = behindLine(context, "/cut/");
    await at.copy.until("following");
    for (let i = 0; i < 5; i++) {
      at.line.cut();
      await cluster.put("/cut/a", `${i}`);
      await at.copy.until(`/cut/a=${i}`);
    }
    assertEquals(at.copy.lists, 1);
    await at.copy.equals(cluster, "/cut/");
  },

  "what was compacted while away is read again": async (context) => {
    const { cluster } = context;
    await cluster.put("/away/deleted", "1");
    await using at = behindLine(context, "/away/");
    await at.copy.until("following");
    at.line.block("up");
    at.line.cut();
    await cluster.delete("/away/deleted");
    for (let i = 0; i < 10; i++) await cluster.put("/away/a", `${i}`);
    await cluster.compact();
    at.line.unblock("up");
    await eventually("it was listed again", () => at.copy.lists === 2);
    await at.copy.equals(cluster, "/away/");
    assertEquals(at.copy.keys.has("/away/deleted"), false);
  },

  "reading all again agrees with a watch in the middle of changes": async (
    { cluster },
  ) => {
    await using copy = new FollowedCopy(clientOf(cluster), "/again/");
    await copy.until("following");
    let isOver = false;
    const changing = storm(cluster, "/again/", new Prng(7), 300)
      .finally(() => isOver = true);
    for (let compared = 0; !isOver || compared < 5; compared++) {
      const entries = await copy.follower.readAll();
      // What the watch has said until this very moment.
      const text = entries?.map(({ key, value }) =>
        `${key}=${new TextDecoder().decode(value)}`
      ).sort().join("\n");
      assertEquals(text, copy.text);
    }
    await changing;
  },

  "of three members any one may go; without a quorum the watch says so": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace, { members: 3 });
    await using copy = new FollowedCopy(clientOf(cluster), "/m/");
    await copy.until("following");
    for (const i of [0, 1, 2]) {
      await cluster.stopMember(i, "SIGKILL");
      await cluster.ready();
      await cluster.put("/m/a", `without ${i}`);
      await copy.until(`/m/a=without ${i}`);
      await cluster.startMember(i);
      await cluster.ready();
    }
    assertEquals(copy.lists, 1);
    copy.said.length = 0;
    await cluster.stopMember(0, "SIGKILL");
    await cluster.stopMember(1, "SIGKILL");
    // The one that is left is there, and alone: `hasleader` ends its watches.
    await copy.until("problem");
    await cluster.startMember(0);
    await cluster.ready();
    await cluster.put("/m/a", "again");
    await copy.until("/m/a=again");
    await copy.equals(cluster, "/m/");
  },

  "a member that hangs is left for another": async ({ workspace }) => {
    await using cluster = await EtcdCluster.start(workspace, { members: 3 });
    // One of the three is ours alone to use, until it hangs.
    const line = new CuttableLine(cluster.members[0]!.port);
    const [, ...others] = cluster.urls;
    const ours = { urls: [`http://127.0.0.1:${line.port}`] };
    await using alone = new FollowedCopy(clientOf(ours), "/hangs/");
    await using either = new FollowedCopy(
      new EtcdClient({
        members: [...ours.urls, ...others].map((it) =>
          parseEtcdMember(it, false)
        ),
        connect: memberConnector(() => ({ cert: "", key: "", ca: "" })),
        timers: systemTimers,
        // The first one first.
        random: () => 0,
      }),
      "/hangs/",
    );
    await alone.until("following");
    await either.until("following");
    line.block("down");
    await cluster.put("/hangs/a", "1");
    await either.until("/hangs/a=1");
    assertEquals(either.said[2]?.startsWith("problem"), true, either.said[2]);
    await alone.until("problem");
    line.unblock("down");
    await alone.until("/hangs/a=1");
    line.close();
    assertEquals(either.lists, 1);
  },

  "a storm while three members are killed in turn, and compacted: the copy is the original":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace, { members: 3 });
      const prng = Prng.fromEnvironment();
      await using copy = new FollowedCopy(clientOf(cluster), "/storm/");
      await copy.until("following");
      let isOver = false;
      const killing = (async () => {
        for (let i = 0; !isOver; i = (i + 1) % 3) {
          await cluster.stopMember(i, "SIGKILL");
          await new Promise((resolve) => setTimeout(resolve, 300));
          await cluster.startMember(i);
          await new Promise((resolve) => setTimeout(resolve, 1_500));
          await cluster.compact().catch(() => {}); // Without a leader it waits.
        }
      })();
      const writers = [1, 2].map((i) =>
        storm(cluster, "/storm/", new Prng(prng.seed + i), STORM_CHANGES / 3)
      );
      await Promise.all(writers);
      isOver = true;
      await killing;
      await cluster.ready();
      await copy.equals(cluster, "/storm/");
    },
};

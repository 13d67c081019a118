import { assert, assertEquals } from "@std/assert";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../tests/support/watch/recorded_faults.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Transcript } from "../../tests/support/watch/transcript.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { EtcdClient } from "./client.ts";
import { KV_METHODS, WATCH_METHODS } from "./etcd_messages.ts";
import { YOUNG_MS } from "../../platform/time/supervise.ts";
import { PrefixFollower } from "./prefix_follower.ts";
import {
  ASK_AGAIN_MS,
  EVENTS_MAX,
  WATCH_ANSWER_MS,
  WATCH_SILENCE_MS,
} from "./watch.ts";

const DECODER = new TextDecoder();

/** A cluster, who follows it, and what was said, as words. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly etcd: FakeEtcd;
  readonly said = new Transcript();
  onList = () => {};
  readonly follower: PrefixFollower;
  readonly #client: EtcdClient;

  constructor(members = 1) {
    const { timers } = this;
    this.etcd = new FakeEtcd(timers, members);
    const random = () => 0;
    const client = this.#client = this.etcd.client();
    this.follower = new PrefixFollower({
      client,
      prefix: "/a/",
      timers,
      random,
      onList: (entries) => {
        this.onList();
        const words = entries.map(({ key, value }) =>
          `${key}=${DECODER.decode(value)}`
        );
        this.said.add(`list ${words.join(" ")}`.trim());
      },
      onChanges: (changes) => {
        const words = changes.map(({ key, value }) =>
          value === undefined ? `-${key}` : `${key}=${DECODER.decode(value)}`
        );
        this.said.add(words.join(" "));
      },
      onFollowing: () => this.said.add("following"),
      onProblem: ({ message }) => this.said.add(`problem: ${message}`),
    });
  }

  /** Followed, and for long enough that an end is no surprise. */
  async started(): Promise<void> {
    this.follower.start();
    await this.watched();
    this.timers.advance(YOUNG_MS);
    this.said.lines.length = 0;
  }

  /** A watch is open, and its opening was heard. */
  async watched(): Promise<void> {
    await this.etcd.until(() => this.etcd.watchCount === 1);
    await nextTurn();
  }

  /** Time in which everybody gets to answer pings. */
  async pass(durationMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < durationMs; passedMs += 2_000) {
      this.timers.advance(2_000);
      await nextTurn();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.follower.stop();
    this.#client[Symbol.dispose]();
    await stopped;
  }
}

Deno.test("all there is comes first, then changes, a revision at a time", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x", "/b": "not of it" });
  rig.follower.start();
  await rig.watched();
  rig.etcd.change({ "/a/2": "y", "/a/1": undefined });
  rig.etcd.change({ "/b": undefined });
  rig.etcd.change({ "/a/2": "z" });
  assertEquals(await rig.said.first(4), [
    "list /a/1=x",
    "following",
    "/a/2=y -/a/1",
    "/a/2=z",
  ]);
});

Deno.test("nothing at all is a list, too", async () => {
  await using rig = new Rig();
  rig.follower.start();
  assertEquals(await rig.said.first(2), ["list", "following"]);
});

Deno.test("fragments of a revision are one change", async () => {
  await using rig = new Rig();
  rig.etcd.fragmentEvents = 2;
  await rig.started();
  rig.etcd.change({ "/a/1": "1", "/a/2": "2", "/a/3": "3" });
  assertEquals(await rig.said.first(1), ["/a/1=1 /a/2=2 /a/3=3"]);
});

Deno.test("a watch that broke goes on where it was", async () => {
  await using rig = new Rig(2);
  await rig.started();
  rig.etcd.kill(2379);
  rig.etcd.change({ "/a/1": "while away" });
  const [problem] = await rig.said.first(1);
  assert(problem!.startsWith("problem: Cannot watch /a/ in etcd"), problem);
  rig.timers.advance(100);
  assertEquals((await rig.said.first(3)).slice(1), [
    "following",
    "/a/1=while away",
  ]);
  const ranges = rig.etcd.calls.filter((call) =>
    call.startsWith(KV_METHODS.range)
  );
  assertEquals(ranges.length, 1, "it was not read again");
});

Deno.test("what was compacted while away is read again", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x", "/a/2": "y" });
  await rig.started();
  rig.etcd.endWatches(StatusCode.UNAVAILABLE, "etcdserver: no leader");
  await rig.said.first(1);
  rig.etcd.change({ "/a/1": undefined });
  rig.etcd.compact();
  rig.timers.advance(100);
  // etcd opens the watch before it says that it cannot.
  assertEquals((await rig.said.first(4)).slice(1), [
    "following",
    "list /a/2=y",
    "following",
  ]);
});

Deno.test("a place that is lost again and again is no hot loop", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x" });
  rig.etcd.loses = true;
  rig.follower.start();
  const said = await rig.said.first(5);
  assertEquals(
    said.slice(0, 4),
    Array(2).fill(["list /a/1=x", "following"])
      .flat(),
  );
  assert(said[4]!.includes("was compacted; all is read again"), said[4]);
  await nextTurn();
  assertEquals(rig.said.lines.length, 5, "it waits");
});

Deno.test("a store that went back is read again", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x" });
  rig.etcd.change({ "/a/2": "y" });
  await rig.started();
  rig.etcd.endWatches(StatusCode.UNAVAILABLE, "etcdserver: server stopped");
  rig.etcd.restore({ "/a/1": "old" }, 2);
  await rig.said.first(1);
  rig.timers.advance(100);
  assertEquals((await rig.said.first(3)).slice(1), [
    "list /a/1=old",
    "following",
  ]);
});

Deno.test("another cluster is read anew", async () => {
  await using rig = new Rig();
  await rig.started();
  rig.etcd.clusterId = "7";
  rig.etcd.change({ "/a/1": "theirs" });
  assertEquals(await rig.said.first(2), ["list /a/1=theirs", "following"]);
});

Deno.test("a silent watch is asked, and left when it does not answer", async () => {
  await using rig = new Rig(2);
  await rig.started();
  await rig.pass(WATCH_SILENCE_MS);
  await rig.etcd.until(() => rig.etcd.calls.includes("progress"));
  assertEquals(rig.said.lines, [], "it has answered");
  rig.etcd.isSilent = true;
  await rig.pass(WATCH_SILENCE_MS + WATCH_ANSWER_MS);
  const [problem] = await rig.said.first(1);
  assert(problem!.includes("it sent nothing"), problem);
  rig.etcd.isSilent = false;
  rig.timers.advance(100);
  assertEquals((await rig.said.first(2))[1], "following");
  assertEquals(rig.etcd.calls.at(-1), `${WATCH_METHODS.watch} 2380`);
});

Deno.test("only a word without events is a place to go on from", async () => {
  await using rig = new Rig();
  await rig.started();
  rig.etcd.change({ "/a/1": "x" });
  await rig.said.first(1);
  // A batch for one who is behind: its head is ahead of its events.
  const revision = { clusterId: rig.etcd.clusterId, memberId: "1" };
  rig.etcd.say({ header: { ...revision, revision: "90" }, watchId: "-1" });
  rig.etcd.endWatches(StatusCode.UNAVAILABLE, "etcdserver: no leader");
  await rig.said.first(2);
  rig.etcd.change({ "/a/2": "y" });
  rig.timers.advance(100);
  assertEquals((await rig.said.first(4)).slice(2), ["following", "/a/2=y"]);
});

Deno.test("a cluster that is away is asked at longer and longer intervals", async () => {
  await using rig = new Rig();
  rig.etcd.down.add(2379);
  rig.follower.start();
  for (let tries = 1; tries <= 5; tries++) {
    await rig.said.first(tries);
    await nextTurn();
    rig.timers.advance(50 * 1.5 ** (tries - 1));
  }
  rig.etcd.down.clear();
  assertEquals((await rig.said.first(7)).slice(5), ["list", "following"]);
});

Deno.test("reading all again gives what the watch has said meanwhile", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x", "/a/2": "y" });
  await rig.started();
  const reading = rig.follower.readAll();
  await rig.etcd.until(() => rig.etcd.calls.includes("progress"));
  rig.etcd.change({ "/a/1": undefined, "/a/3": "z" });
  const entries = await reading;
  await rig.said.first(1);
  const keys = entries?.map(({ key }) => key) ?? [];
  // Whichever came first, the answer or the change: never half of it.
  const isBefore = keys.join() === "/a/1,/a/2";
  assert(isBefore || keys.join() === "/a/2,/a/3", keys.join());
});

Deno.test("a question that etcd forgets is asked again", async () => {
  await using rig = new Rig();
  rig.etcd.change({ "/a/1": "x" });
  await rig.started();
  rig.etcd.isSilent = true;
  const reading = rig.follower.readAll();
  await rig.etcd.until(() => rig.etcd.calls.includes("progress"));
  rig.etcd.isSilent = false;
  rig.timers.advance(ASK_AGAIN_MS);
  assertEquals((await reading)?.map(({ key }) => key), ["/a/1"]);
});

Deno.test("events tell how far the watch has come, too", async () => {
  await using rig = new Rig();
  await rig.started();
  rig.etcd.isSilent = true;
  const reading = rig.follower.readAll();
  await rig.etcd.until(() => rig.etcd.calls.includes("progress"));
  rig.etcd.isSilent = false;
  rig.etcd.change({ "/a/1": "x" });
  assertEquals((await reading)?.map(({ key }) => key), ["/a/1"]);
});

Deno.test("a revision without end is not kept", async () => {
  await using rig = new Rig();
  await rig.started();
  const events = Array.from({ length: EVENTS_MAX / 2 + 1 }, () => ({
    type: 1,
    kv: null,
  }));
  rig.etcd.say({ events, fragment: true });
  await nextTurn();
  assertEquals(rig.said.lines, []);
  rig.etcd.say({ events, fragment: true });
  const [problem] = await rig.said.first(1);
  assert(problem!.includes(`more than ${EVENTS_MAX} changes`), problem);
});

Deno.test("nothing is said after it was stopped", async () => {
  await using rig = new Rig();
  await rig.started();
  await rig.follower.stop();
  rig.etcd.change({ "/a/1": "x" });
  await nextTurn();
  assertEquals(rig.said.lines, []);
});

Deno.test("a slip of a follower is not the end of it", async () => {
  using recorded = new RecordedErrors();
  await using rig = new Rig();
  rig.onList = () => {
    rig.onList = () => {};
    slip();
  };
  rig.follower.start();
  assertEquals(await rig.said.first(1), ["problem: an internal error"]);
  assertEquals(recorded.errors, [{ where: "task", message: "a slip" }]);
  rig.timers.advance(60_000);
  assertEquals((await rig.said.first(2)).at(-1), "list");
});

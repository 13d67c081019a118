import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  failure,
  FakeApiServer,
  type FakeWatch,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../tests/support/watch/recorded_faults.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { Transcript } from "../../tests/support/watch/transcript.ts";
import { nextTurn, until } from "../../tests/support/watch/event_loop.ts";
import { YOUNG_MS } from "../../platform/time/supervise.ts";
import { LIST_SILENCE_MS, ListWatch } from "./list_watch.ts";
import type { KubernetesObject } from "./objects.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  isNewer,
  ObjectCopy,
  objectKeyOf,
  OBJECTS_REMOVED_MAX,
} from "./object_copy.ts";

const PATH = "/api/v1/services";

/** A list and watch of a fake API server; what it said, as words. */
class Rig implements AsyncDisposable {
  readonly server = FakeApiServer.start();
  readonly timers = new FakeTimers();
  readonly said = new Transcript();
  readonly batches: number[] = [];
  onChanges = () => {};
  readonly listWatch: ListWatch<KubernetesObject>;
  readonly #client = plainClient(this.server.url, this.timers);

  constructor() {
    this.listWatch = new ListWatch({
      client: this.#client,
      path: PATH,
      timers: this.timers,
      random: () => 0,
      onChanges: (changes) => {
        this.onChanges();
        this.batches.push(changes.length);
        for (const { type, object } of changes) {
          this.said.add(`${type} ${object.metadata.name}`);
        }
      },
      onSynced: () => this.said.add("synced"),
      onProblem: (error) => this.said.add(`problem: ${error.message}`),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listWatch.stop();
    this.#client[Symbol.dispose]();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

function service(name: string): KubernetesObject {
  return { metadata: { name } };
}

/** Until the watch is known to be open, and has lasted. */
async function grow(rig: Rig, watch: FakeWatch, name: string): Promise<void> {
  const recorded = rig.said.first(rig.said.lines.length + 1);
  watch.send("ADDED", rig.server.put("/elsewhere/probes", service(name)));
  await recorded;
  rig.timers.advance(YOUNG_MS);
}

/** Lets a wait of the client or the list begin, then end. */
async function pass(rig: Rig, durationMs: number): Promise<void> {
  await until(() => rig.timers.pendingCount > 0);
  rig.timers.advance(durationMs);
}

/** The next watch, whatever has to be waited for before it. */
async function nextWatch(rig: Rig): Promise<FakeWatch> {
  let next: FakeWatch | undefined;
  rig.server.nextWatch().then((watch) => next = watch);
  while (next === undefined) {
    await nextTurn();
    rig.timers.advance(10);
  }
  return next;
}

Deno.test("what is there comes as one batch, what changes one by one", async () => {
  await using rig = new Rig();
  rig.server.put(PATH, service("a"));
  rig.server.put(PATH, service("b"));
  rig.listWatch.start();
  await rig.server.nextWatch();
  rig.server.put(PATH, service("c"));
  rig.server.put(PATH, service("a"));
  rig.server.remove(PATH, "b");
  assertEquals(await rig.said.first(6), [
    "added a",
    "added b",
    "synced",
    "added c",
    "updated a",
    "removed b",
  ]);
  assertEquals(rig.batches, [2, 1, 1, 1]);
  assertEquals([...rig.listWatch.objects.keys()], ["a", "c"]);
});

Deno.test("a long list is read page by page", async () => {
  await using rig = new Rig();
  for (let i = 0; i < 1_201; i++) rig.server.put(PATH, service(`s${i}`));
  rig.listWatch.start();
  const watch = await rig.server.nextWatch();
  assertEquals(rig.listWatch.objects.size, 1_201);
  assertEquals(rig.server.log, [
    ...Array(3).fill(`GET ${PATH}`),
    `WATCH ${PATH}`,
  ]);
  assertEquals(watch.query.get("resourceVersion"), "1301");
});

Deno.test("pages that go out of date are read all in one", async () => {
  await using rig = new Rig();
  for (let i = 0; i < 600; i++) rig.server.put(PATH, service(`s${i}`));
  rig.server.failNext(
    () =>
      Response.json({
        metadata: { resourceVersion: "5", continue: "500" },
        items: [service("since deleted")],
      }),
    () => failure(410, "Expired", "the continue parameter is too old"),
  );
  rig.listWatch.start();
  await rig.server.nextWatch();
  assertEquals(rig.listWatch.objects.size, 600);
  assertEquals(rig.server.requests[2]!.query.has("limit"), false);
});

Deno.test("a watch that ends, or breaks, goes on where it was", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const first = await rig.server.nextWatch();
  await grow(rig, first, "a");
  first.end();
  const second = await rig.server.nextWatch();
  assertEquals(second.query.get("resourceVersion"), "101");
  await grow(rig, second, "b");
  second.cut();
  const third = await rig.server.nextWatch();
  assertEquals(third.query.get("resourceVersion"), "102");
  assertEquals(rig.said.lines, ["synced", "added a", "added b"]);
});

Deno.test("a bookmark moves the place to go on from", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const first = await rig.server.nextWatch();
  first.send("BOOKMARK", { metadata: { resourceVersion: "777" } });
  await grow(rig, first, "a"); // its version is 101
  first.end();
  const second = await rig.server.nextWatch();
  assertEquals(second.query.get("resourceVersion"), "777");
});

Deno.test("watches that end at once do not become a storm", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const beginMs = rig.timers.now();
  for (let round = 0; round < 5; round++) {
    (await nextWatch(rig)).end();
  }
  // 50, 75, 112 and 168 ms; without waits it would be a few steps.
  assert(rig.timers.now() - beginMs >= 400, `${rig.timers.now() - beginMs}`);
});

for (const tooOld of ["in the stream", "as an answer"]) {
  Deno.test(`410 ${tooOld} lists again and finds what was missed`, async () => {
    await using rig = new Rig();
    rig.server.put(PATH, service("stays"));
    rig.server.put(PATH, service("goes"));
    rig.listWatch.start();
    const watch = await rig.server.nextWatch();
    await grow(rig, watch, "unlisted");
    const gone = { kind: "Status", code: 410, reason: "Expired" };
    if (tooOld === "in the stream") watch.send("ERROR", gone);
    else {
      rig.server.failNext(() => failure(410, "Expired", "old"));
      watch.end();
    }
    // Nobody watches now.
    rig.server.remove(PATH, "goes");
    rig.server.put(PATH, service("comes"));
    await rig.server.nextWatch();
    assertEquals((await rig.said.first(8)).slice(4).sort(), [
      "added comes",
      "removed goes",
      "removed unlisted",
      "synced",
    ]);
  });
}

Deno.test("a list that is forgotten at once is asked for again, and no problem until it is seven times", async () => {
  await using rig = new Rig();
  rig.server.put(PATH, service("one"));
  rig.listWatch.start();
  const gone = { kind: "Status", code: 410, reason: "Expired" };
  for (let round = 1; round <= 7; round++) {
    const watch = await nextWatch(rig);
    // Its answer is on its way.
    await until(() => !rig.listWatch.isStale);
    assertEquals(rig.said.lines, [
      "added one",
      ...Array(round).fill("synced"),
    ]);
    watch.send("ERROR", gone);
  }
  assertStringIncludes((await rig.said.first(9))[8]!, "problem: ");
  assert(rig.listWatch.isStale);
  assertEquals(rig.listWatch.objects.size, 1, "the last good copy stays");
});

Deno.test("a list that was followed may be forgotten again as often", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const gone = { kind: "Status", code: 410, reason: "Expired" };
  for (let round = 1; round <= 9; round++) {
    const watch = await nextWatch(rig);
    await grow(rig, watch, `service-${round}`);
    watch.send("ERROR", gone);
  }
  await nextWatch(rig);
  assert(!rig.listWatch.isStale);
});

Deno.test("a line that is no event lists again", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const watch = await rig.server.nextWatch();
  watch.sendRaw("<html>\n");
  assertEquals(
    (await rig.said.first(2))[1],
    'problem: Cannot understand the watch: "<html>" is no JSON',
  );
  await pass(rig, 30_000);
  assertEquals((await rig.said.first(3))[2], "synced");
});

Deno.test("half a line at a break is no event", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const watch = await rig.server.nextWatch();
  await grow(rig, watch, "a");
  const object = { metadata: { name: "b", resourceVersion: "999" } };
  watch.sendRaw(JSON.stringify({ type: "ADDED", object }));
  watch.end();
  await rig.server.nextWatch();
  assertEquals(rig.said.lines, ["synced", "added a"]);
});

Deno.test("a watch that says nothing is given up and made anew", async () => {
  await using rig = new Rig();
  rig.listWatch.start();
  const first = await rig.server.nextWatch();
  first.send("BOOKMARK", { metadata: { resourceVersion: "500" } });
  first.send("ADDED", { metadata: { name: "a", resourceVersion: "501" } });
  await rig.said.first(2);
  rig.timers.advance(LIST_SILENCE_MS - 1);
  await grow(rig, first, "b"); // 1 s passes
  rig.timers.advance(LIST_SILENCE_MS - 2 * YOUNG_MS);
  await grow(rig, first, "c");
  assertEquals(rig.server.log.length, 2, "a word from it is enough");
  rig.timers.advance(LIST_SILENCE_MS - YOUNG_MS);
  const second = await rig.server.nextWatch();
  assertEquals(second.query.get("resourceVersion"), "501");
});

Deno.test("an API server that is away is asked again, ever more rarely", async () => {
  await using rig = new Rig();
  const refuse = () => failure(403, "Forbidden", "no");
  rig.server.failNext(refuse, refuse, refuse);
  rig.listWatch.start();
  for (let round = 1; round <= 3; round++) {
    await rig.said.first(round);
    await pass(rig, 30_000);
  }
  assertEquals((await rig.said.first(4))[3], "synced");
  assertEquals(rig.server.requests.slice(0, 4).length, 4);
});

Deno.test("an API server that breaks is a problem at once, not after half a minute", async () => {
  await using rig = new Rig();
  const broken = () => failure(500, "InternalError", "etcd");
  rig.server.failNext(broken);
  rig.listWatch.start();
  assertStringIncludes((await rig.said.first(1))[0]!, "problem: ");
  await pass(rig, 30_000);
  assertEquals((await rig.said.first(2))[1], "synced");
  const watch = await rig.server.nextWatch();
  await grow(rig, watch, "a");
  rig.server.failNext(broken);
  const said = rig.said.first(rig.said.lines.length + 1);
  watch.end();
  assertStringIncludes((await said).at(-1)!, "problem: ");
});

Deno.test("stopping ends the watch, and nothing is said after it", async () => {
  const rig = new Rig();
  rig.listWatch.start();
  await rig.server.nextWatch();
  await rig.listWatch.stop();
  rig.server.put(PATH, service("late"));
  await rig[Symbol.asyncDispose]();
  assertEquals(rig.said.lines, ["synced"]);
});

Deno.test("a slip of a follower is not the end of it", async () => {
  using recorded = new RecordedErrors();
  await using rig = new Rig();
  rig.server.put(PATH, service("a"));
  rig.onChanges = () => {
    rig.onChanges = () => {};
    slip();
  };
  rig.listWatch.start();
  assertEquals(await rig.said.first(1), ["problem: an internal error"]);
  assertEquals(recorded.errors, [{ where: "task", message: "a slip" }]);
  await pass(rig, 1_000);
  await rig.server.nextWatch();
  rig.server.put(PATH, service("b"));
  assertEquals((await rig.said.first(3)).at(-1), "added b");
});

function object(name: string, version: number | string): KubernetesObject {
  return { metadata: { name, resourceVersion: `${version}` } };
}

Deno.test("versions are compared as numbers, or only told apart", () => {
  assertEquals(isNewer("10", "9"), true);
  assertEquals(isNewer("9", "10"), false);
  assertEquals(isNewer("9", "9"), false);
  assertEquals(isNewer("18446744073709551616", "18446744073709551615"), true);
  assertEquals(isNewer("b", "a"), true);
  assertEquals(isNewer("a", "a"), false);
});

Deno.test("objects of two namespaces do not meet", () => {
  const key = (namespace: string) =>
    objectKeyOf({ metadata: { name: "a", namespace } });
  assertEquals([key("x"), key("y"), objectKeyOf(object("a", 1))], [
    "x/a",
    "y/a",
    "a",
  ]);
});

Deno.test("a list that is the same is no news", () => {
  const copy = new ObjectCopy();
  copy.replace([object("a", 1), object("b", 2)]);
  assertEquals(copy.replace([object("b", 2), object("a", 1)]), []);
});

Deno.test("the memory of what was removed has an end", () => {
  const copy = new ObjectCopy();
  for (let i = 0; i <= OBJECTS_REMOVED_MAX; i++) {
    copy.put(object(`n${i}`, 10));
    copy.remove(object(`n${i}`, 20));
  }
  assertEquals(copy.put(object("n1", 15)), undefined);
  assertEquals(copy.put(object("n0", 15))?.type, "added");
});

Deno.test("however events are doubled, delayed and mixed with lists, the copy ends equal", () => {
  return forAll(200, (random) => {
    const copy = new ObjectCopy();
    const reported = new Set<string>();
    const truth = new Map<string, KubernetesObject>();
    const events: { isRemoval: boolean; object: KubernetesObject }[] = [];
    for (let version = 1; version <= 40; version++) {
      const name = `n${random.below(5)}`;
      const isRemoval = truth.has(name) && random.below(3) === 0;
      const next = object(name, version);
      if (isRemoval) truth.delete(name);
      else truth.set(name, next);
      events.push({ isRemoval, object: next });
      // Twice, or an older one once more.
      if (random.below(2) === 0) {
        events.push(events[random.below(events.length)]!);
      }
    }
    const note = (change: { type: string; object: KubernetesObject }) => {
      const name = objectKeyOf(change.object);
      if (change.type === "removed") reported.delete(name);
      else reported.add(name);
    };
    for (const { isRemoval, object } of events) {
      const change = isRemoval ? copy.remove(object) : copy.put(object);
      if (change !== undefined) note(change);
    }
    assertEquals(new Map(copy.objects), truth);
    assertEquals(reported, new Set(truth.keys()));
    const list = [...truth.values()].filter(() => random.below(2) === 0);
    for (const change of copy.replace(list)) note(change);
    assertEquals(reported, new Set(list.map(objectKeyOf)));
  });
});

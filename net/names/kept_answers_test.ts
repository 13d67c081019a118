import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  type Finding,
  FRESH_MS_MAX,
  KeptAnswers,
  NAMES_MAX,
  RETRY_MS,
  STALE_AFTER_MS,
  UNKNOWN_MS_MAX,
} from "./kept_answers.ts";
import { LookupError } from "./resolver.ts";

class Scene {
  readonly timers = new FakeTimers();
  readonly kept = new KeptAnswers(this.timers);
  asked = 0;
  answer: () => Promise<Finding> = () => this.good("10.0.0.1");

  good(address: string, ttlMs = 10_000): Promise<Finding> {
    return Promise.resolve({ addresses: [address], ttlMs });
  }

  async find(name = "db.test"): Promise<string> {
    const { addresses, freshForMs, isLastAnswer } = await this.kept.find(
      name,
      name,
      () => {
        this.asked++;
        return this.answer();
      },
    );
    return `${addresses} ${isLastAnswer ? "last" : freshForMs}`;
  }
}

const timeout = () => Promise.reject(new LookupError("db.test", "", "timeout"));

Deno.test("a name is asked for once by all, and again when its time is over", async () => {
  const scene = new Scene();
  const all = await Promise.all([scene.find(), scene.find()]);
  assertEquals(all, ["10.0.0.1 10000", "10.0.0.1 10000"]);
  scene.timers.advance(9_000);
  assertEquals(await scene.find(), "10.0.0.1 1000");
  assertEquals(scene.asked, 1);
  scene.timers.advance(1_000);
  scene.answer = () => scene.good("10.0.0.2", 3_600_000);
  assertEquals(await scene.find(), `10.0.0.2 ${FRESH_MS_MAX}`);
  assertEquals(scene.asked, 2);
});

Deno.test("the last answer is there when name servers are silent", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  scene.answer = () => new Promise(() => {});
  const waiting = scene.find();
  scene.timers.advance(STALE_AFTER_MS);
  assertEquals(await waiting, "10.0.0.1 last");
  // From now on nobody waits for it.
  assertEquals(await scene.find(), "10.0.0.1 last");
  assertEquals(scene.asked, 2);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("the last answer is there when name servers fail, and they are asked again", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  scene.answer = timeout;
  assertEquals(await scene.find(), "10.0.0.1 last");
  assertEquals(await scene.find(), "10.0.0.1 last");
  assertEquals(scene.asked, 2);
  scene.timers.advance(RETRY_MS);
  scene.answer = () => scene.good("10.0.0.2");
  assertEquals(await scene.find(), "10.0.0.2 10000");
});

Deno.test("a name that is gone has no last answer", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  scene.answer = () => Promise.resolve({ addresses: [], ttlMs: 3_600_000 });
  await assertRejects(() => scene.find(), LookupError, "no such host");
  scene.answer = () => scene.good("10.0.0.2");
  await assertRejects(() => scene.find(), LookupError, "no such host");
  scene.timers.advance(UNKNOWN_MS_MAX);
  assertEquals(await scene.find(), "10.0.0.2 10000");
});

Deno.test("failures are not kept, and names are bounded", async () => {
  const scene = new Scene();
  scene.answer = timeout;
  await assertRejects(
    () => scene.find(),
    LookupError,
    "lookup db.test: i/o timeout",
  );
  scene.answer = () => scene.good("10.0.0.1");
  assertEquals(await scene.find(), "10.0.0.1 10000");
  for (let index = 0; index < NAMES_MAX; index++) {
    await scene.find(`n${index}.test`);
  }
  const { asked } = scene;
  await scene.find("n5.test");
  assertEquals(scene.asked, asked);
  await scene.find();
  assertEquals(scene.asked, asked + 1);
});

Deno.test("what was kept is asked for again when all may have changed", async () => {
  const scene = new Scene();
  await scene.find();
  scene.kept.expire();
  scene.answer = timeout;
  assertEquals(await scene.find(), "10.0.0.1 last");
});

import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  FRESH_MS,
  KeptAnswers,
  LAST_ANSWER_MS,
  LAST_ANSWER_RETRY_MS,
  NAMES_MAX,
  NEWER_WITHIN_MS,
} from "./kept_answers.ts";
import { LookupError } from "./resolver.ts";

class Scene {
  readonly timers = new FakeTimers();
  readonly kept = new KeptAnswers(this.timers);
  asked = 0;
  answer: () => Promise<readonly string[]> = found("10.0.0.1");

  async find(name = "db.test"): Promise<string> {
    const addresses = await this.kept.find(name, () => {
      this.asked++;
      return this.answer();
    });
    return addresses.join();
  }
}

const found = (...addresses: string[]) => () => Promise.resolve(addresses);
const timeout = () => Promise.reject(new LookupError("db.test", "", "timeout"));

Deno.test("a name is asked for once by all, and again after a moment", async () => {
  const scene = new Scene();
  const all = await Promise.all([scene.find(), scene.find()]);
  assertEquals(all, ["10.0.0.1", "10.0.0.1"]);
  scene.timers.advance(FRESH_MS - 1);
  assertEquals(await scene.find(), "10.0.0.1");
  assertEquals(scene.asked, 1);
  scene.timers.advance(1);
  scene.answer = found("10.0.0.2");
  assertEquals(await scene.find(), "10.0.0.2");
  assertEquals(scene.asked, 2);
});

Deno.test("the last answer is there when name servers are silent", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  const late = Promise.withResolvers<readonly string[]>();
  scene.answer = () => late.promise;
  const waiting = scene.find();
  scene.timers.advance(NEWER_WITHIN_MS);
  assertEquals(await waiting, "10.0.0.1");
  // From now on no caller waits for it.
  assertEquals(await scene.find(), "10.0.0.1");
  assertEquals(scene.asked, 2);
  assertEquals(scene.timers.pendingCount, 0);
  late.resolve(["10.0.0.2"]);
  await late.promise;
  await Promise.resolve();
  assertEquals(await scene.find(), "10.0.0.2");
});

Deno.test("the last answer is there when name servers fail, and they are asked again", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  scene.answer = timeout;
  assertEquals(await scene.find(), "10.0.0.1");
  assertEquals(await scene.find(), "10.0.0.1");
  assertEquals(scene.asked, 2);
  scene.timers.advance(LAST_ANSWER_RETRY_MS);
  scene.answer = found("10.0.0.2");
  assertEquals(await scene.find(), "10.0.0.2");
  scene.timers.advance(LAST_ANSWER_MS);
  scene.answer = timeout;
  await assertRejects(() => scene.find(), LookupError, "i/o timeout");
});

Deno.test("a name that is gone has no last answer", async () => {
  const scene = new Scene();
  await scene.find();
  scene.timers.advance(60_000);
  scene.answer = found();
  assertEquals(await scene.find(), "");
  scene.answer = found("10.0.0.2");
  assertEquals(await scene.find(), "");
  scene.timers.advance(FRESH_MS);
  assertEquals(await scene.find(), "10.0.0.2");
});

Deno.test("failures are not kept, and names are bounded", async () => {
  const scene = new Scene();
  scene.answer = timeout;
  await assertRejects(
    () => scene.find(),
    LookupError,
    "lookup db.test: i/o timeout",
  );
  scene.answer = found("10.0.0.1");
  assertEquals(await scene.find(), "10.0.0.1");
  for (let index = 0; index < NAMES_MAX; index++) {
    await scene.find(`n${index}.test`);
  }
  const { asked } = scene;
  await scene.find("n5.test");
  assertEquals(scene.asked, asked);
  await scene.find();
  assertEquals(scene.asked, asked + 1);
});

import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { type LookupLimits, LookupQueue, SLOW_MS } from "./lookup_queue.ts";

const LIMITS: LookupLimits = {
  running: 4,
  perDomain: 2,
  waiting: 6,
  timeoutMs: 10_000,
};

class Scene {
  readonly timers = new FakeTimers();
  readonly queue = new LookupQueue(LIMITS, this.timers);
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();

  /** A task that ends when it is told, or when it is given up. */
  run(domain: string, name = domain): Promise<string> {
    return this.queue.run(domain, (signal) => {
      this.begun.push(name);
      return new Promise((resolve, reject) => {
        this.#ends.set(name, () => resolve(name));
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    });
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!();
    await settled();
  }
}

/** Lets promises have their turns. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

Deno.test("a domain takes so many places, and leaves others to others", async () => {
  const scene = new Scene();
  const slow = ["a1", "a2", "a3"].map((name) => scene.run("a", name));
  const other = scene.run("b");
  assertEquals(scene.begun, ["a1", "a2", "b"]);
  await scene.end("b");
  assertEquals(await other, "b");
  await scene.end("a1");
  assertEquals(scene.begun, ["a1", "a2", "b", "a3"]);
  for (const name of ["a2", "a3"]) await scene.end(name);
  assertEquals(await Promise.all(slow), ["a1", "a2", "a3"]);
  assertEquals([scene.queue.running, scene.timers.pendingCount], [0, 0]);
});

Deno.test("domains that wait have their turns one after another", async () => {
  const scene = new Scene();
  for (const name of ["a1", "a2", "b1", "b2"]) scene.run(name[0]!, name);
  for (const name of ["a3", "a4", "c1", "b3"]) scene.run(name[0]!, name);
  await scene.end("a1");
  await scene.end("b1");
  await scene.end("a2");
  assertEquals(scene.begun.slice(4).sort(), ["a3", "b3", "c1"]);
});

Deno.test("who has had no answer for long gives way to who waits", async () => {
  const scene = new Scene();
  const names = ["a", "b", "c", "d"];
  const slow = names.map((name) => scene.run(name).catch((error) => error));
  scene.timers.advance(SLOW_MS + 1);
  assertEquals(scene.queue.running, 4); // Nobody waits.
  scene.run("e");
  await settled();
  assertEquals(scene.begun, [...names, "e"]);
  assertEquals((await slow[0]).fault, "timeout");
  assertEquals(scene.queue.running, 4);
  // The same within a domain that has all its places taken.
  const scene2 = new Scene();
  const first = scene2.run("a", "a1").catch((error) => error);
  scene2.run("a", "a2");
  scene2.run("a", "a3");
  scene2.timers.advance(SLOW_MS);
  await settled();
  assertEquals((await first).fault, "timeout");
  assertEquals(scene2.begun, ["a1", "a2", "a3"]);
});

Deno.test("a domain that is new does not wait behind all others", async () => {
  const scene = new Scene();
  for (const name of ["a", "b", "c", "d"]) scene.run(name);
  const early = ["e", "f", "g"].map((name) => scene.run(name));
  scene.run("new");
  await scene.end("b");
  assertEquals(scene.begun.slice(4), ["new"]);
  for (const name of ["a", "c", "d", "new"]) await scene.end(name);
  for (const name of ["e", "f", "g"]) await scene.end(name);
  assertEquals(await Promise.all(early), ["e", "f", "g"]);
  assertEquals(scene.queue.running, 0);
});

Deno.test("waiting counts, and is bounded", async () => {
  const scene = new Scene();
  for (const name of ["a", "b", "c", "d"]) {
    scene.queue.run(name, () => new Promise(() => {})).catch(() => {});
  }
  const waiting = Array.from(
    { length: 6 },
    (_, index) => scene.run(`w${index}`),
  );
  const errors = waiting.map((each) =>
    assertRejects(() => each, Error, "timeout")
  );
  await assertRejects(() => scene.run("x"), Error, "full");
  // Those who run do not listen, so their places stay taken.
  scene.timers.advance(LIMITS.timeoutMs);
  await Promise.all(errors);
  assertEquals([scene.begun, scene.queue.running], [[], 4]);
});

Deno.test("a domain that many wait for leaves room for others to wait", async () => {
  const scene = new Scene();
  const flood = Array.from(
    { length: 20 },
    (_, index) => scene.run("dead", `d${index}`).catch(({ fault }) => fault),
  );
  const other = scene.run("well");
  assertEquals(scene.begun, ["d0", "d1", "well"]);
  await scene.end("well");
  assertEquals(await other, "well");
  scene.timers.advance(LIMITS.timeoutMs);
  const faults = await Promise.all(flood);
  const count = (wanted: string) =>
    faults.filter((one) => one === wanted).length;
  assertEquals([count("timeout"), count("full")], [5, 15]);
});

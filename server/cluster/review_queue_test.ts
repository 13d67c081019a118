import { assert, assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import {
  ReviewQueue,
  REVIEWS_WAITING_MAX,
  TooManyReviewsError,
  TURN_WAIT_MS,
  UNDER_WAY_MAX,
} from "./token_reviews.ts";

/** Work that a test ends; who began, in order. */
class Rig {
  readonly clock = new FakeTimers();
  readonly queue = new ReviewQueue(this.clock);
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  readonly #ends: (() => void)[] = [];

  /** @returns The end of it, whichever. */
  ask(source: string): Promise<void> {
    return this.queue.run(source, () => {
      this.begun.push(source);
      return new Promise<void>((resolve) => this.#ends.push(resolve));
    }).catch((error) => {
      assert(error instanceof TooManyReviewsError);
      this.refused.push(source);
    });
  }

  askOften(source: string, count: number): void {
    for (let i = 0; i < count; i++) void this.ask(source);
  }

  /** The oldest that is under way ends, and the next one begins. */
  async end(): Promise<void> {
    this.#ends.shift()!();
    await nextTurn();
  }
}

Deno.test("one source takes half of the room and leaves the other half", async () => {
  const rig = new Rig();
  rig.askOften("one", 10_000);
  assertEquals(rig.begun.length, UNDER_WAY_MAX / 2);
  assertEquals(rig.queue.waiting, REVIEWS_WAITING_MAX / 2);
  await nextTurn();
  assertEquals(
    rig.refused.length,
    10_000 - (UNDER_WAY_MAX + REVIEWS_WAITING_MAX) / 2,
  );
  void rig.ask("two");
  assertEquals(rig.begun.at(-1), "two");
});

Deno.test("sources take turns, however much each has waiting", async () => {
  const rig = new Rig();
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  rig.askOften("a", 3);
  rig.askOften("b", 1);
  rig.askOften("c", 2);
  const before = rig.begun.length;
  // Of the last bit of room nobody gets a second piece at once.
  for (let i = 0; i < 20; i++) await rig.end();
  assertEquals(rig.begun.slice(before), ["a", "b", "c", "a", "c", "a"]);
});

Deno.test("sources that showed a good token go first, and those that showed a bad one last", async () => {
  const rig = new Rig();
  rig.queue.note("good", true);
  rig.queue.note("bad", false);
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  for (const source of ["bad", "new", "good"]) void rig.ask(source);
  const before = rig.begun.length;
  for (let i = 0; i < 3; i++) await rig.end();
  assertEquals(rig.begun.slice(before), ["good", "new", "bad"]);
});

Deno.test("a bad token beside good ones of the same source changes nothing", async () => {
  const rig = new Rig();
  rig.queue.note("site", true);
  rig.queue.note("site", false);
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  for (const source of ["new", "site"]) void rig.ask(source);
  await rig.end();
  assertEquals(rig.begun.at(-1), "site");
});

Deno.test("thousands of sources do not shut out one that is known", async () => {
  const rig = new Rig();
  rig.queue.note("good", true);
  for (let i = 0; i < 5_000; i++) void rig.ask(`made up ${i}`);
  assertEquals(rig.queue.waiting, REVIEWS_WAITING_MAX);
  void rig.ask("good");
  await rig.end();
  assertEquals(rig.begun.at(-1), "good");
  assertEquals(rig.refused.includes("good"), false);
});

Deno.test("a source that is known no better makes no other go", async () => {
  const rig = new Rig();
  for (let i = 0; i < UNDER_WAY_MAX + REVIEWS_WAITING_MAX; i++) {
    void rig.ask(`${i}`);
  }
  await rig.ask("one more");
  assertEquals(rig.refused, ["one more"]);
});

Deno.test("a turn that comes too late is none", async () => {
  const rig = new Rig();
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  void rig.ask("late");
  rig.clock.advance(TURN_WAIT_MS + 1);
  void rig.ask("next");
  await rig.end();
  assertEquals(rig.refused, ["late"]);
  assertEquals(rig.begun.at(-1), "next");
});

Deno.test("work that fails gives its place back", async () => {
  const queue = new ReviewQueue(new FakeTimers());
  for (let i = 0; i < 2 * UNDER_WAY_MAX; i++) {
    await assertRejects(
      () => queue.run("here", () => Promise.reject(new Error("away"))),
      Error,
      "away",
    );
  }
});

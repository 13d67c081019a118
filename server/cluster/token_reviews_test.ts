import { assert, assertEquals, assertRejects } from "@std/assert";
import type { ReviewedToken } from "../../neighbours/kubernetes/token_review.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  BELIEVED_MS,
  ReviewQueue,
  REVIEWS_WAITING_MAX,
  TokenReviews,
  TooManyReviewsError,
  TURN_WAIT_MS,
  UNDER_WAY_MAX,
} from "./token_reviews.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";

const GOOD: ReviewedToken = {
  kind: "service-account",
  namespace: "ns",
  name: "agent",
};
const BAD: ReviewedToken = { kind: "invalid", why: "expired" };

function setUp(answer: (token: string) => Promise<ReviewedToken>) {
  const clock = new FakeTimers();
  const asked: string[] = [];
  const reviews = new TokenReviews((token) => {
    asked.push(token);
    return answer(token);
  }, clock);
  return { clock, asked, reviews };
}

Deno.test("a good token is asked about once a minute", async () => {
  const { clock, asked, reviews } = setUp(() => Promise.resolve(GOOD));
  assertEquals(await reviews.of("t", "here"), GOOD);
  clock.advance(BELIEVED_MS - 1);
  await reviews.of("t", "here");
  assertEquals(asked, ["t"]);
  clock.advance(1);
  await reviews.of("t", "here");
  assertEquals(asked, ["t", "t"]);
});

Deno.test("a bad token, and no answer, are not remembered", async () => {
  const answers = [
    Promise.resolve(BAD),
    Promise.reject(new Error("away")),
    Promise.resolve(GOOD),
  ];
  answers[1]!.catch(() => {});
  const { asked, reviews } = setUp(() => answers.shift()!);
  assertEquals(await reviews.of("t", "here"), BAD);
  await assertRejects(() => reviews.of("t", "here"), Error, "away");
  assertEquals(await reviews.of("t", "here"), GOOD);
  assertEquals(asked.length, 3);
});

Deno.test("agents that show the same token wait for one answer", async () => {
  const answer = Promise.withResolvers<ReviewedToken>();
  const { asked, reviews } = setUp(() => answer.promise);
  const waiting = [
    reviews.of("t", "here"),
    reviews.of("t", "here"),
    reviews.of("t", "here"),
  ];
  answer.resolve(BAD);
  assertEquals(await Promise.all(waiting), [BAD, BAD, BAD]);
  assertEquals(asked, ["t"]);
});

Deno.test("a minute is counted from the question, not from the answer", async () => {
  const answer = Promise.withResolvers<ReviewedToken>();
  const { clock, asked, reviews } = setUp(() => answer.promise);
  const first = reviews.of("t", "here");
  while (asked.length === 0) await new Promise((done) => setTimeout(done, 0));
  clock.advance(BELIEVED_MS);
  answer.resolve(GOOD);
  await first;
  await reviews.of("t", "here");
  assertEquals(asked.length, 2);
});

Deno.test("tokens are remembered up to a limit, the oldest is forgotten", async () => {
  const asked: string[] = [];
  const review = (token: string) => {
    asked.push(token);
    return Promise.resolve(GOOD);
  };
  const reviews = new TokenReviews(review, new FakeTimers(), 2);
  for (const token of ["a", "b", "c", "c", "b"]) {
    await reviews.of(token, "here");
  }
  assertEquals(asked, ["a", "b", "c"]);
  await reviews.of("a", "here");
  assertEquals(asked.length, 4);
});

Deno.test("thousands of made-up tokens that nobody answers about keep no agent out", async () => {
  const over = Promise.withResolvers<ReviewedToken>();
  const { reviews } = setUp((token) =>
    token === "good" ? Promise.resolve(GOOD) : over.promise
  );
  const attackers = Array.from(
    { length: 3_000 },
    (_, index) =>
      reviews.of(`bad ${index}`, `203.0.113.${index % 3}`)
        .catch((error) => error),
  );
  assertEquals(await reviews.of("good", "10.0.0.7"), GOOD);
  over.resolve(BAD);
  for (const end of await Promise.all(attackers)) {
    assert(end === BAD || end instanceof TooManyReviewsError);
  }
});

/** Work that a test ends; who began, in order. */
class QueueRig {
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
  const rig = new QueueRig();
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
  const rig = new QueueRig();
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
  const rig = new QueueRig();
  rig.queue.note("good", true);
  rig.queue.note("bad", false);
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  for (const source of ["bad", "new", "good"]) void rig.ask(source);
  const before = rig.begun.length;
  for (let i = 0; i < 3; i++) await rig.end();
  assertEquals(rig.begun.slice(before), ["good", "new", "bad"]);
});

Deno.test("a bad token beside good ones of the same source changes nothing", async () => {
  const rig = new QueueRig();
  rig.queue.note("site", true);
  rig.queue.note("site", false);
  for (let i = 0; i < UNDER_WAY_MAX; i++) void rig.ask(`first ${i}`);
  for (const source of ["new", "site"]) void rig.ask(source);
  await rig.end();
  assertEquals(rig.begun.at(-1), "site");
});

Deno.test("thousands of sources do not shut out one that is known", async () => {
  const rig = new QueueRig();
  rig.queue.note("good", true);
  for (let i = 0; i < 5_000; i++) void rig.ask(`made up ${i}`);
  assertEquals(rig.queue.waiting, REVIEWS_WAITING_MAX);
  void rig.ask("good");
  await rig.end();
  assertEquals(rig.begun.at(-1), "good");
  assertEquals(rig.refused.includes("good"), false);
});

Deno.test("a source that is known no better makes no other go", async () => {
  const rig = new QueueRig();
  for (let i = 0; i < UNDER_WAY_MAX + REVIEWS_WAITING_MAX; i++) {
    void rig.ask(`${i}`);
  }
  await rig.ask("one more");
  assertEquals(rig.refused, ["one more"]);
});

Deno.test("a turn that comes too late is none", async () => {
  const rig = new QueueRig();
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

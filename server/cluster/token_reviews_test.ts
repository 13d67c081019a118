import { assertEquals, assertRejects } from "@std/assert";
import type { ReviewedToken } from "../../neighbours/kubernetes/token_review.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { BELIEVED_MS, TokenReviews } from "./token_reviews.ts";

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

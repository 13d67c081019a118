import { assertEquals } from "@std/assert";
import { TokenBucket } from "./token_bucket.ts";

/** How many tokens can be taken at `nowMs`. */
function drain(bucket: TokenBucket, nowMs: number): number {
  let count = 0;
  while (bucket.spend(nowMs)) count++;
  return count;
}

Deno.test("a bucket starts full and fills with time, up to its burst", () => {
  const bucket = new TokenBucket({ burst: 10, perSecond: 4 }, 1000);
  assertEquals(drain(bucket, 1000), 10);
  assertEquals(drain(bucket, 1249), 0);
  assertEquals(drain(bucket, 1250), 1);
  assertEquals(drain(bucket, 3250), 8);
  assertEquals(drain(bucket, 1e9), 10);
});

Deno.test("asking often does not lose the fractions", () => {
  const bucket = new TokenBucket({ burst: 10, perSecond: 1 }, 0);
  drain(bucket, 0);
  let count = 0;
  for (let nowMs = 1; nowMs <= 5000; nowMs += 7) count += drain(bucket, nowMs);
  assertEquals(count, 4);
});

Deno.test("tokens given back are as good as new, and never above the burst", () => {
  const bucket = new TokenBucket({ burst: 10, perSecond: 1 }, 0);
  bucket.refund(5);
  assertEquals(drain(bucket, 0), 10);
  bucket.refund();
  bucket.refund(2);
  assertEquals(drain(bucket, 0), 3);
});

Deno.test("a clock that stands still or goes back gives nothing", () => {
  const bucket = new TokenBucket({ burst: 3, perSecond: 1000 }, 5000);
  assertEquals(drain(bucket, 5000), 3);
  assertEquals(drain(bucket, 4000), 0);
  assertEquals(drain(bucket, 5000), 0);
});

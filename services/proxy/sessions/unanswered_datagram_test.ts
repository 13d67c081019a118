import { assertEquals } from "@std/assert";
import {
  UNANSWERED_BYTES_MAX,
  UNANSWERED_MS,
  UNANSWERED_TOTAL_BYTES_MAX,
  UnansweredDatagram,
} from "./unanswered_datagram.ts";

const bytes = (length: number) => new Uint8Array(length).fill(7);

Deno.test("the last datagram is kept until it is answered", () => {
  const kept = new UnansweredDatagram({ bytes: 0 });
  assertEquals(kept.take(0), undefined);
  kept.keep(bytes(9), 0);
  kept.keep(bytes(3), 0);
  assertEquals(kept.take(UNANSWERED_MS), bytes(3));
  assertEquals(kept.take(UNANSWERED_MS), undefined);
  kept.keep(bytes(0), 0);
  assertEquals(kept.take(0), bytes(0));
  kept.keep(bytes(3), 0);
  kept.forget();
  assertEquals(kept.take(0), undefined);
});

Deno.test("what is too old or too long is not kept, nor what was before it", () => {
  const kept = new UnansweredDatagram({ bytes: 0 });
  kept.keep(bytes(3), 0);
  assertEquals(kept.take(UNANSWERED_MS + 1), undefined);
  kept.keep(bytes(3), 0);
  kept.keep(bytes(UNANSWERED_BYTES_MAX + 1), 0);
  assertEquals(kept.take(0), undefined);
});

Deno.test("all of a port together keep only so much", () => {
  const budget = { bytes: UNANSWERED_TOTAL_BYTES_MAX - 10 };
  const [one, other] = [
    new UnansweredDatagram(budget),
    new UnansweredDatagram(budget),
  ];
  one.keep(bytes(6), 0);
  other.keep(bytes(6), 0);
  assertEquals(other.take(0), undefined);
  assertEquals(one.take(0), bytes(6));
  other.keep(bytes(10), 0);
  assertEquals(budget.bytes, UNANSWERED_TOTAL_BYTES_MAX);
  assertEquals(other.take(0), bytes(10));
  assertEquals(budget.bytes, UNANSWERED_TOTAL_BYTES_MAX - 10);
});

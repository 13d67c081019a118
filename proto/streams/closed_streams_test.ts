import { assertEquals } from "@std/assert";
import {
  CLOSED_STREAMS_REMEMBERED,
  type ClosedHow,
  ClosedStreams,
  LATE_BYTES_EXTRA,
} from "./stream_table.ts";

Deno.test("what was under way when we gave a stream up is told from what is a mistake", () => {
  const cases: Array<[ClosedHow, boolean]> = [
    ["ended", false],
    ["resetByPeer", false],
    ["resetByUs", true],
    ["ignored", true],
  ];
  const closed = new ClosedStreams();
  for (const [index, [how, isUnderWay]] of cases.entries()) {
    closed.remember(index, how);
    assertEquals(closed.recall(index), how);
    assertEquals(closed.isUnderWay(index), isUnderWay);
  }
  assertEquals([closed.recall(99), closed.isUnderWay(99)], [
    "forgotten",
    false,
  ]);
});

Deno.test("the one that closed longest ago is forgotten first", () => {
  const closed = new ClosedStreams();
  for (let id = 0; id < CLOSED_STREAMS_REMEMBERED; id++) {
    closed.remember(id, "resetByUs");
  }
  closed.remember(0, "ended"); // Closed anew: the youngest now.
  closed.remember(CLOSED_STREAMS_REMEMBERED, "ended");
  assertEquals(closed.recall(0), "ended");
  assertEquals(closed.recall(1), "forgotten");
  assertEquals(closed.recall(2), "resetByUs");
});

Deno.test("what is late has the window that was left, and a little more", () => {
  const closed = new ClosedStreams();
  closed.remember(1, "resetByUs", 1_000);
  assertEquals(closed.takeLate(1, 1_000), true);
  assertEquals(closed.takeLate(1, LATE_BYTES_EXTRA), true);
  assertEquals(closed.takeLate(1, 0), true);
  assertEquals(closed.takeLate(1, 1), false);
});

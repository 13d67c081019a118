import { assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { CLEAN, joined } from "../../tests/support/memory/joined_conduits.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { join } from "./transfer.ts";

for (const from of ["left", "right"] as const) {
  const to = from === "left" ? "right" : "left";
  Deno.test(`a reset from the ${from} is a reset, not an end, with its reason`, async () => {
    const ends = joined();
    ends[from].send("abc");
    await ends[to].received(3);
    ends[from].reset("no more");
    const reset = { kind: "reset", reason: "no more" } as const;
    assertEquals(await ends[to].closed, reset);
    assertEquals(ends[to].hasEnded, false);
    assertEquals((await ends.result).end, reset);
  });

  Deno.test(`a loss on the ${from} is a loss, neither end nor reset`, async () => {
    const ends = joined();
    const path = from === "left" ? ends.leftLine : ends.rightLine;
    ends[from].send("abc");
    await ends[to].received(3);
    path.lose("the link went");
    const lost = { kind: "lost", reason: "the link went" } as const;
    assertEquals(await ends[to].closed, lost);
    assertEquals(ends[to].hasEnded, false);
    assertEquals((await ends.result).end, lost);
  });
}

Deno.test("a reset overtakes what is queued, and frees it", async () => {
  const { left, right, result } = joined({ windowBytes: 1_000 });
  right.stopReading();
  left.send(new Uint8Array(5_000));
  await settled();
  left.reset("gone");
  assertEquals((await right.closed).kind, "reset");
  assertEquals((await result).bytesAToB, 1_000);
});

Deno.test("a reset after a half-close is a reset all the same", async () => {
  const { left, right, result } = joined();
  left.finish();
  await right.ended;
  left.reset("changed my mind");
  assertEquals((await right.closed).kind, "reset");
  assertEquals((await result).end.kind, "reset");
});

Deno.test("both ends lost at once close once each", async () => {
  const { leftLine, rightLine, left, right, result } = joined();
  leftLine.lose("one");
  rightLine.lose("two");
  assertEquals((await result).end, { kind: "lost", reason: "one" });
  assertEquals([left.end?.kind, right.end?.kind], ["lost", "lost"]);
});

Deno.test("half-closed is said once, and either can be given up then", async () => {
  for (const first of ["left", "right"] as const) {
    const [leftLine, a] = MemoryConduit.pair();
    const [b, rightLine] = MemoryConduit.pair();
    const ends = {
      left: new ConduitProbe(leftLine),
      right: new ConduitProbe(rightLine),
    };
    const received: unknown[] = [];
    const joined = join(a, b, undefined, (which) => received.push(which));
    const other = first === "left" ? "right" : "left";
    ends[first].send("abc");
    ends[first].finish();
    await ends[other].ended;
    assertEquals(received, [joined]);
    assertEquals(joined.bytes, 3);
    joined.giveUp("long enough");
    const reset = { kind: "reset", reason: "long enough" } as const;
    assertEquals([await ends.left.closed, await ends.right.closed], [
      reset,
      reset,
    ]);
  }
});

Deno.test("giving up resets the one that is not closed", async () => {
  const [leftLine, a] = MemoryConduit.pair({ windowBytes: 100 });
  const [b, rightLine] = MemoryConduit.pair({ windowBytes: 100 });
  const left = new ConduitProbe(leftLine);
  const right = new ConduitProbe(rightLine);
  const received: unknown[] = [];
  const joined = join(a, b, undefined, (which) => received.push(which));
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  joined.giveUp("it takes nothing");
  assertEquals((await right.closed).kind, "reset");
  assertEquals(received.length, 1);
});

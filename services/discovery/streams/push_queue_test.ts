import { assertEquals } from "@std/assert";
import { RecordedErrors } from "../../../tests/support/watch/recorded_errors.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { SLICE_MS } from "../../../platform/time/slices.ts";
import { PushQueue } from "./push_queue.ts";

/** Each pushed client costs `costMs`. */
class Rig {
  readonly timers = new FakeTimers();
  readonly pushed: string[] = [];
  readonly waitedMs: number[] = [];
  readonly queue: PushQueue<string>;
  onTold: (client: string) => void = () => {};
  drained = 0;

  constructor(costMs = 0) {
    this.queue = new PushQueue({
      timers: this.timers,
      push: (client, sinceMs) => {
        this.pushed.push(client);
        this.waitedMs.push(this.timers.now() - sinceMs);
        this.timers.advance(costMs);
        this.onTold(client);
      },
    });
  }

  addAll(...clients: readonly string[]): void {
    this.queue.addAll(clients, () => this.drained++);
  }

  run(): void {
    do this.timers.advance(0); while (this.queue.size > 0);
  }
}

const MANY = Array.from({ length: 1_000 }, (_, index) => `client-${index}`);

Deno.test("PushQueue pushes to a client that was added", () => {
  const rig = new Rig();
  rig.queue.add("a");
  assertEquals(rig.pushed, ["a"]);
  assertEquals(rig.queue.size, 0);
});

Deno.test("PushQueue pushes to a client that comes later in its next slice", () => {
  const rig = new Rig();
  rig.queue.addLater("a");
  rig.queue.addLater("b");
  assertEquals(rig.pushed, []);
  rig.run();
  assertEquals(rig.pushed, ["a", "b"]);
  rig.onTold = (client) => {
    if (client === "c") rig.queue.addLater("d");
  };
  rig.queue.add("c");
  rig.run();
  assertEquals(rig.pushed, ["a", "b", "c", "d"]);
  rig.queue.addLater("e");
  rig.queue.remove("e");
  rig.timers.advance(0);
  assertEquals(rig.pushed.length, 4);
});

Deno.test("PushQueue pushes to many in the order in which they were added", () => {
  const rig = new Rig();
  rig.addAll(...MANY);
  assertEquals(rig.pushed, MANY);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue pushes once to a client that was added while it waited", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b");
  rig.queue.add("b");
  rig.addAll("b");
  rig.run();
  assertEquals(rig.pushed, ["a", "b"]);
  assertEquals(rig.drained, 2);
});

Deno.test("PushQueue keeps the time and place of the first reason", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b", "c");
  rig.queue.add("b");
  rig.run();
  assertEquals(rig.pushed, ["a", "b", "c"]);
  assertEquals(rig.waitedMs, [0, SLICE_MS, 2 * SLICE_MS]);
});

Deno.test("PushQueue comes again to a client that was added while it was pushed", () => {
  const rig = new Rig();
  rig.onTold = () => {
    if (rig.pushed.length < 2) rig.queue.add("a");
  };
  rig.addAll("a", "b");
  assertEquals(rig.pushed, ["a", "b", "a"]);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue lets a client come again only behind all others", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b", "c");
  rig.queue.add("a");
  rig.run();
  assertEquals(rig.pushed, ["a", "b", "c", "a"]);
});

Deno.test("PushQueue pushes nothing to a client that was removed", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b", "c");
  rig.queue.remove("b");
  rig.queue.remove("b");
  rig.run();
  assertEquals(rig.pushed, ["a", "c"]);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue is drained when the last one was removed", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b");
  rig.queue.remove("b");
  rig.run();
  assertEquals(rig.pushed, ["a"]);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue lets the event loop have its turn between slices", () => {
  const rig = new Rig(1);
  rig.addAll(...MANY);
  assertEquals(rig.pushed.length, SLICE_MS);
  assertEquals(rig.drained, 0);
  assertEquals(rig.timers.pendingCount, 1);
  rig.timers.advance(MANY.length);
  assertEquals(rig.pushed, MANY);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue goes on with the others when the push to one failed", () => {
  const rig = new Rig();
  rig.onTold = (client) => {
    if (client === "a") throw new TypeError("a bug");
  };
  using errors = new RecordedErrors();
  rig.addAll("a", "b");
  assertEquals(errors.messages, ["a bug"]);
  rig.run();
  assertEquals(rig.pushed, ["a", "b"]);
  assertEquals(rig.drained, 1);
});

Deno.test("PushQueue forgets everybody when it is stopped", () => {
  const rig = new Rig(SLICE_MS);
  rig.addAll("a", "b");
  rig.queue.stop();
  rig.timers.advance(1_000);
  assertEquals(rig.pushed, ["a"]);
  assertEquals(rig.queue.size, 0);
  assertEquals(rig.timers.pendingCount, 0);
});

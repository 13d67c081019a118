import { assertEquals } from "@std/assert";
import { RecordedErrors } from "../../../tests/support/watch/recorded_errors.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { Debounce, FLAPPING_MAX, FLAPPING_MS } from "./debounce.ts";

/** Pushes by the time after the first of them; they end when a test says so. */
class Rig {
  readonly timers = new FakeTimers();
  readonly pushes: number[] = [];
  merged = 0;
  readonly debounce: Debounce;
  readonly #startMs = this.timers.now();
  #done: (() => void)[] = [];

  constructor(pushesEnd: "at once" | "later" = "at once") {
    this.debounce = new Debounce({
      windowMinMs: 50,
      windowMaxMs: 1_000,
      timers: this.timers,
      push: (done) => {
        this.pushes.push(this.timers.now() - this.#startMs);
        if (pushesEnd === "at once") done();
        else this.#done.push(done);
      },
      merged: () => this.merged++,
    });
  }

  /** Changes every `everyMs` for `forMs`; the last one is at the end. */
  change(forMs: number, everyMs: number, service?: (index: number) => string) {
    for (let index = 0; index * everyMs < forMs; index++) {
      const removed = service === undefined ? [] : [service(index)];
      this.debounce.changed(removed);
      this.timers.advance(everyMs);
    }
  }

  endPush(): void {
    this.#done.shift()!();
  }
}

Deno.test("Debounce pushes all that comes in a window when it ends, once", () => {
  const rig = new Rig();
  for (let index = 0; index < 10; index++) rig.debounce.changed();
  assertEquals(rig.pushes, [0]);
  rig.timers.advance(49);
  assertEquals(rig.pushes, [0]);
  rig.timers.advance(1_000);
  assertEquals(rig.pushes, [0, 50]);
  assertEquals(rig.merged, 8);
});

Deno.test("Debounce doubles its window while changes keep coming", () => {
  const rig = new Rig();
  rig.change(5_000, 10);
  assertEquals(rig.pushes, [0, 50, 150, 350, 750, 1_550, 2_550, 3_550, 4_550]);
});

Deno.test("Debounce begins anew after a window without changes", () => {
  const rig = new Rig();
  rig.change(2_000, 10);
  rig.timers.advance(3_000);
  const before = rig.pushes.length;
  rig.change(60, 10);
  assertEquals(rig.pushes.slice(before), [5_000, 5_050]);
});

Deno.test("Debounce lets a removal jump the queue", () => {
  const rig = new Rig();
  rig.change(1_600, 10);
  assertEquals(rig.pushes.at(-1), 1_550);
  rig.timers.advance(100);
  rig.debounce.changed(["default/web"]);
  rig.timers.advance(99);
  assertEquals(rig.pushes.at(-1), 1_550);
  rig.timers.advance(51);
  // A quarter of a window of 1 s after it was opened.
  assertEquals(rig.pushes.at(-1), 1_800);
});

Deno.test("Debounce pushes a removal at once when its part of the window has passed", () => {
  const rig = new Rig();
  rig.change(1_560, 10);
  rig.timers.advance(600);
  rig.debounce.changed(["default/web"]);
  rig.timers.advance(0);
  assertEquals(rig.pushes.at(-1), 2_160);
});

Deno.test("Debounce lets a service that keeps losing endpoints wait", () => {
  const rig = new Rig();
  rig.change(60_000, 10, () => "default/web");
  // As many as for changes of any kind: at most one per window.
  assertEquals(rig.pushes.slice(0, 5), [0, 50, 150, 350, 750]);
  assertEquals(rig.pushes.length, 64);
});

Deno.test("Debounce lets many services in turn wait, too", () => {
  const rig = new Rig();
  const first = (index: number) => `default/service-${index % 200}`;
  rig.change(2_000, 10, first);
  const before = rig.pushes.length;
  rig.change(58_000, 10, first);
  assertEquals(rig.pushes.length - before <= 58, true);
});

Deno.test("Debounce forgets that a service was flapping", () => {
  const rig = new Rig();
  rig.change(1_600, 10, () => "default/web");
  rig.change(FLAPPING_MS + 100, 10);
  const before = rig.pushes.length;
  rig.debounce.changed(["default/web"]);
  rig.timers.advance(1_000 / 4);
  assertEquals(rig.pushes.length, before + 1);
});

Deno.test("Debounce remembers a bounded number of services", () => {
  const rig = new Rig();
  const all = Array.from({ length: FLAPPING_MAX + 1 }, (_, i) => `a/${i}`);
  rig.debounce.changed(all);
  rig.debounce.changed();
  rig.timers.advance(60);
  // The first one was forgotten, so it is a surprise again.
  rig.debounce.changed(["a/0"]);
  rig.timers.advance(60);
  assertEquals(rig.pushes, [0, 50, 100]);
});

Deno.test("Debounce never has two pushes at once", () => {
  const rig = new Rig("later");
  rig.debounce.changed();
  rig.debounce.changed();
  rig.timers.advance(10_000);
  assertEquals(rig.pushes, [0]);
  rig.endPush();
  assertEquals(rig.pushes, [0, 10_000]);
  rig.endPush();
  rig.timers.advance(10_000);
  assertEquals(rig.pushes, [0, 10_000]);
});

Deno.test("Debounce pushes a change that came in a push that outlived its window", () => {
  const rig = new Rig("later");
  rig.debounce.changed();
  rig.timers.advance(10_000);
  rig.debounce.changed(["default/web"]);
  assertEquals(rig.pushes, [0]);
  rig.endPush();
  assertEquals(rig.pushes, [0, 10_000]);
});

Deno.test("Debounce has windows of one length when it is configured so", () => {
  const timers = new FakeTimers();
  let pushes = 0;
  const debounce = new Debounce({
    windowMinMs: 100,
    windowMaxMs: 100,
    timers,
    push: (done) => {
      pushes++;
      done();
    },
  });
  for (let index = 0; index < 100; index++) {
    debounce.changed();
    timers.advance(10);
  }
  assertEquals(pushes, 11);
});

Deno.test("Debounce pushes nothing after it was stopped", () => {
  const rig = new Rig("later");
  rig.debounce.changed();
  rig.debounce.changed();
  rig.debounce.stop();
  rig.endPush();
  rig.debounce.changed();
  rig.timers.advance(10_000);
  assertEquals(rig.pushes, [0]);
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("Debounce goes on after a push that could not even begin", () => {
  using errors = new RecordedErrors();
  const timers = new FakeTimers();
  let pushes = 0;
  const debounce = new Debounce({
    windowMinMs: 50,
    windowMaxMs: 1_000,
    timers,
    push(done) {
      if (pushes++ === 0) throw new Error("a slip");
      done();
    },
  });
  debounce.changed();
  debounce.changed();
  timers.advance(1_000);
  assertEquals([pushes, errors.messages], [2, ["a slip"]]);
});

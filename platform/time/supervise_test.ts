import { assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  type Next,
  type Run,
  supervise,
  type SuperviseOptions,
  YOUNG_MS,
} from "./supervise.ts";

class Trouble extends Error {}

/** A loop whose runs are ended by the test; waits are half of their ceiling. */
class Rig {
  readonly timers = new FakeTimers();
  readonly stopping = new AbortController();
  readonly waits: number[] = [];
  /** The run under way. */
  run: Run | undefined;
  runs = 0;
  #ending = Promise.withResolvers<Next>();
  readonly over: Promise<void>;

  constructor(more: Partial<SuperviseOptions<Error>> = {}) {
    this.over = supervise<Error>({
      timers: this.timers,
      capMs: 300,
      random: () => 0,
      signal: this.stopping.signal,
      run: (run) => {
        this.runs++;
        this.run = run;
        return this.#ending.promise.finally(() => {
          this.run = undefined;
          this.#ending = Promise.withResolvers();
        });
      },
      problemOf: (error) => {
        if (error instanceof Trouble) return error;
        throw error;
      },
      onProblem: (_problem, retryMs) => this.waits.push(retryMs),
      ...more,
    });
  }

  async ends(next: Next): Promise<void> {
    this.#ending.resolve(next);
    await settled();
  }

  async fails(error: Error = new Trouble("no")): Promise<void> {
    this.#ending.reject(error);
    await settled();
  }

  /** Lets the wait that was told of pass. */
  async waited(): Promise<void> {
    await this.timers.advance(this.waits.at(-1)!);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    if (this.run !== undefined) await this.ends("again");
    await this.over;
    assertEquals(this.timers.pendingCount, 0);
  }
}

Deno.test("a run that fails is followed by another one, after waits that grow", async () => {
  const rig = new Rig();
  for (let i = 0; i < 5; i++) {
    assertEquals(rig.runs, i + 1);
    await rig.fails();
    assertEquals(rig.runs, i + 1);
    await rig.waited();
  }
  assertEquals(rig.waits, [50, 75, 112.5, 150, 150]);
  await rig.stop();
});

Deno.test("a run that lived long enough makes the next wait short, a young one does not", async () => {
  const rig = new Rig();
  await rig.fails();
  await rig.waited();
  rig.run!.opened();
  rig.timers.advance(YOUNG_MS - 1);
  assertEquals(rig.run!.isYoung, true);
  await rig.fails();
  await rig.waited();
  rig.run!.opened();
  rig.timers.advance(YOUNG_MS);
  assertEquals(rig.run!.isYoung, false);
  await rig.fails();
  assertEquals(rig.waits, [50, 75, 50]);
  await rig.stop();
});

Deno.test("what was never open is young for ever", async () => {
  const rig = new Rig();
  await rig.fails();
  await rig.waited();
  rig.timers.advance(10 * YOUNG_MS);
  await rig.fails();
  assertEquals(rig.waits, [50, 75]);
  await rig.stop();
});

Deno.test("a success makes the next wait short, whatever becomes of the run", async () => {
  const rig = new Rig();
  await rig.fails();
  await rig.waited();
  rig.run!.succeeded();
  await rig.fails();
  assertEquals(rig.waits, [50, 50]);
  await rig.stop();
});

Deno.test("a run says what follows it: another one, a wait, or nothing", async () => {
  const rig = new Rig();
  await rig.ends("again");
  assertEquals([rig.runs, rig.timers.pendingCount], [2, 0]);
  await rig.ends({ afterMs: 7_000 });
  await rig.timers.advance(6_999);
  assertEquals(rig.runs, 2);
  await rig.timers.advance(1);
  assertEquals(rig.runs, 3);
  // As after a failure, and nobody is told of it.
  await rig.ends("backoff");
  await rig.timers.advance(50);
  assertEquals(rig.runs, 4);
  await rig.fails();
  assertEquals(rig.waits, [75]);
  await rig.waited();
  await rig.ends("done");
  await rig.over;
  assertEquals([rig.runs, rig.timers.pendingCount], [5, 0]);
});

Deno.test("a problem may want a longer wait than it would be", async () => {
  const rig = new Rig({ leastMs: ({ message }) => Number(message) });
  await rig.fails(new Trouble("5000"));
  await rig.waited();
  await rig.fails(new Trouble("0"));
  assertEquals(rig.waits, [5_000, 75]);
  await rig.stop();
});

Deno.test("to be stopped ends a wait at once, and what a run throws then is nobody's", async () => {
  const waiting = new Rig();
  await waiting.fails();
  await waiting.stop();
  assertEquals(waiting.runs, 1);
  const running = new Rig();
  running.stopping.abort();
  await running.fails(new RangeError("because of that"));
  await running.over;
  assertEquals(running.waits, []);
});

Deno.test("what is no problem ends all runs, and is thrown", async () => {
  const rig = new Rig();
  const over = assertRejects(() => rig.over, RangeError, "a slip");
  await rig.fails(new RangeError("a slip"));
  await over;
  assertEquals(rig.timers.pendingCount, 0);
});

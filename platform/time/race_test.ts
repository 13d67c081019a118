import { assert, assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  type Attempt,
  FROZEN_LOOK_MS,
  FROZEN_LOOKS,
  type NextDoubt,
  PromisedRace,
} from "./race.ts";

const PATIENCE_MS = 100;

type Asked = Attempt<string, string>;

/** A machine that may be busy: its looks come late then. */
class BusyTimers extends FakeTimers {
  lateMs = 0;

  override now(): number {
    return super.now() + this.lateMs;
  }
}

/** Asks `a`, `b` … until one answers; each does as the test says. */
class Scripted extends PromisedRace<string, string> {
  /** What happened, in order. */
  readonly told: string[] = [];
  readonly attempts: Asked[] = [];
  readonly lives = new Set<string>();
  result: string | undefined;

  constructor(
    readonly clock: BusyTimers,
    private readonly queue: string[],
    signal?: AbortSignal,
  ) {
    super(clock, PATIENCE_MS);
    this.run(signal).then(
      (won) => this.result = won,
      (error) => this.result = `lost: ${error.message}`,
    );
  }

  begin(): void {
    const next = this.queue.shift();
    if (next !== undefined) this.enter(next);
    else if (this.running.length === 0) this.lose(new Error("no other"));
  }

  protected ask(attempt: Asked): void {
    this.told.push(`ask ${attempt.asked}`);
    this.attempts.push(attempt);
    attempt.pending = { cancel: () => this.told.push(`end ${attempt.asked}`) };
    if (attempt.asked === "quick") attempt.onConnected("at once");
  }

  protected won(_attempt: Asked, won: string): void {
    this.succeed(won);
  }

  protected lost({ asked }: Asked, error: Error, hasHeard: boolean): void {
    this.told.push(`${asked} ${hasHeard ? "heard, " : ""}failed`);
    if (error.message === "final") this.lose(error);
    else this.begin();
  }

  protected discard(won: string): void {
    this.told.push(`late ${won}`);
  }

  protected override doubt(_attempt: Asked, times: number): NextDoubt {
    if (this.hearer !== undefined) return "watch";
    this.begin();
    return times === 0 ? PATIENCE_MS : "enough";
  }

  protected override isSilent({ asked }: Asked): boolean {
    return !this.lives.has(asked);
  }

  protected override frozen({ asked }: Asked): void {
    this.lose(new Error(`${asked} stands still`));
  }

  /** What is said leaves for it, if it may. */
  say(attempt: Asked): void {
    if (!this.isRunning(attempt)) return;
    this.queue.unshift(...this.sayTo(attempt).map(({ asked }) => asked));
  }

  get hearers(): number {
    return this.hearer === undefined || this.isOver ? 0 : 1;
  }

  get runs(): string {
    return this.running.map(({ asked }) => asked).join("");
  }

  get over(): boolean {
    return this.isOver;
  }
}

function race(queue: string, signal?: AbortSignal) {
  return new Scripted(new BusyTimers(), [...queue], signal);
}

Deno.test("one that is silent is raced by the next, and the first answer counts", async () => {
  for (const winner of [0, 1]) {
    const one = race("abc");
    one.clock.advance(PATIENCE_MS - 1);
    assertEquals(one.runs, "a");
    one.clock.advance(1);
    assertEquals(one.runs, "ab");
    const [loser] = one.attempts.filter((_, at) => at !== winner);
    one.attempts[winner]!.onConnected("done");
    loser!.onConnected("too");
    loser!.onFailed(new Error("and late"));
    await settled();
    assertEquals([one.result, one.clock.pendingCount], ["done", 0]);
    const end = [`end ${loser!.asked}`, "late too"];
    assertEquals(one.told, ["ask a", "ask b", ...end]);
  }
  assertEquals(
    await new Scripted(new BusyTimers(), ["quick"]).run(),
    "at once",
  );
});

Deno.test("one that fails is followed at once, and the last failure ends the race", async () => {
  const one = race("ab");
  one.attempts[0]!.onFailed(new Error("away"));
  assertEquals(one.runs, "b");
  one.attempts[1]!.onFailed(new Error("away"));
  await settled();
  assertEquals([one.result, one.clock.pendingCount], ["lost: no other", 0]);
});

Deno.test("what is said reaches one, and others only when that has failed", async () => {
  const one = race("abc");
  one.clock.advance(PATIENCE_MS);
  const [first, second] = one.attempts;
  one.say(second!);
  assertEquals([one.runs, one.told.at(-1)], ["b", "end a"]);
  one.say(first!);
  one.clock.advance(10 * PATIENCE_MS);
  assertEquals(one.runs, "b");
  second!.onFailed(new Error("not passed on"));
  assertEquals([one.runs, one.told.at(-2)], ["a", "b heard, failed"]);
  one.attempts.at(-1)!.onConnected("done");
  await settled();
  assertEquals([one.result, one.clock.pendingCount], ["done", 0]);
});

Deno.test("one that stands still with what was said loses the race, unless this machine was busy", async () => {
  for (const isDoubted of [false, true]) {
    const one = race("a");
    const [only] = one.attempts;
    if (!isDoubted) one.say(only!);
    one.clock.advance(3 * PATIENCE_MS);
    // It may be told something when it is not doubted any more.
    if (isDoubted) one.say(only!);
    one.lives.add("a");
    one.clock.advance(20 * FROZEN_LOOK_MS);
    one.lives.clear();
    one.clock.advance((FROZEN_LOOKS - 1) * FROZEN_LOOK_MS);
    one.clock.lateMs += 200;
    one.clock.advance(FROZEN_LOOK_MS);
    one.clock.advance((FROZEN_LOOKS - 1) * FROZEN_LOOK_MS);
    assertEquals(one.runs, "a", "looks are counted anew");
    one.clock.advance(FROZEN_LOOK_MS);
    await settled();
    assertEquals(one.result, "lost: a stands still");
    assertEquals([one.told.at(-1), one.clock.pendingCount], ["end a", 0]);
  }
});

Deno.test("a race that is given up is so everywhere", async () => {
  const abort = new AbortController();
  const one = race("ab", abort.signal);
  one.clock.advance(PATIENCE_MS);
  abort.abort(new Error("enough"));
  await settled();
  assertEquals([one.result, one.clock.pendingCount], ["lost: enough", 0]);
  assertEquals(one.told.slice(-2), ["end a", "end b"]);
  await assertRejects(() => one.run(abort.signal), Error, "enough");
});

Deno.test("whatever happens in whatever order: one outcome, one hearer, and nothing is left", async () => {
  await forAll(500, async (random) => {
    const one = race("abcdef");
    for (let step = 0; step < 40 && !one.over; step++) {
      const attempt = random.pick(one.attempts);
      const deeds: readonly (() => void)[] = [
        () => one.clock.advance(random.below(2 * PATIENCE_MS)),
        () => attempt.onFailed(new Error(random.pick(["away", "final"]))),
        () => one.say(attempt),
        () => attempt.onConnected(attempt.asked),
        () => one.lives.add(attempt.asked),
      ];
      random.pick(deeds)();
      assert(one.hearers === 0 || one.runs.length === 1);
    }
    for (const attempt of one.attempts) attempt.onConnected("z");
    await settled();
    const ends = one.told.filter((line) => !/^ask|late/.test(line));
    assertEquals([one.runs, one.clock.pendingCount], ["", 0]);
    // Each is answered, has failed, or was given up, and each once.
    const isWon = !one.result!.startsWith("lost");
    assertEquals(ends.length, one.attempts.length - (isWon ? 1 : 0));
  });
});

import { assertEquals, assertStringIncludes } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { FileError } from "../files/file_error.ts";
import type { FileWatchOptions } from "../files/watch_files.ts";
import { MetricRegistry } from "../metrics/metrics.ts";
import { CONTRADICTION_MS, Reloads, type ReloadSource } from "./reloads.ts";

/** Files that are what the test says. */
class Source implements ReloadSource {
  readonly files: readonly string[];
  inUse = "1";
  /** What stands there; an error is a file that cannot be used. */
  there: string | Error = "1";

  constructor(readonly kind: string, ...files: string[]) {
    this.files = files;
  }

  reload(): string | undefined {
    if (this.there instanceof Error) throw this.there;
    if (this.there === this.inUse) return undefined;
    this.inUse = this.there;
    return `now ${this.inUse}`;
  }
}

function stage() {
  const timers = new FakeTimers();
  const metrics = new MetricRegistry();
  const log = new RecordedLog();
  let watched: FileWatchOptions | undefined;
  let now = 1_000_000;
  const reloads = new Reloads({
    log,
    timers,
    metrics,
    prefix: "t_",
    now: () => now,
    watch: (options) => {
      watched = options;
      return { close: () => {} };
    },
  });
  const pair = new Source("pair", "a.crt", "a.key");
  const policy = new Source("policy", "p.yaml");
  reloads.add(pair);
  reloads.add(policy);
  reloads.start();
  return {
    reloads,
    pair,
    policy,
    timers,
    tell: (...files: string[]) => watched!.onFiles!(files),
    watched: () => watched!.files,
    said: () => log.take(),
    metric: (name: string) =>
      metrics.expose().split("\n").find((line) => line.startsWith(name)),
    later: () => now += 5_000,
  };
}

Deno.test("files that change are read again, others are not", () => {
  const { pair, policy, tell, said, metric, later } = stage();
  pair.there = policy.there = "2";
  later();
  tell("p.yaml");
  assertEquals([pair.inUse, policy.inUse], ["1", "2"]);
  assertEquals(said(), ["info: policy: now 2"]);
  const time = 't_reload_last_success_timestamp_seconds{kind="policy"}';
  assertEquals(metric(time), `${time} 1005`);
  tell("a.crt", "a.key");
  assertEquals(said(), ["info: pair: now 2"]);
  tell("a.crt");
  assertEquals(said(), []);
});

Deno.test("a file that changed before the watch began is seen", () => {
  const { reloads, pair, watched, said } = stage();
  const late = new Source("late", "l");
  pair.there = late.there = "2";
  reloads.add(late);
  assertEquals(watched(), ["a.crt", "a.key", "p.yaml", "l"]);
  assertEquals(said(), ["info: pair: now 2", "info: late: now 2"]);
});

Deno.test("a certificate and its key come one after the other without a word", () => {
  const { reloads, pair, timers, tell, said, metric } = stage();
  pair.there = new FileError("they do not belong together");
  tell("a.crt");
  timers.advance(CONTRADICTION_MS - 1);
  assertEquals([said(), reloads.notes], [[], []]);
  pair.there = "2";
  tell("a.key");
  assertEquals(said(), ["info: pair: now 2"]);
  timers.advance(10 * CONTRADICTION_MS);
  assertEquals(said(), []);
  const failures = 't_reload_failures_total{kind="pair"}';
  assertEquals(metric(failures), `${failures} 0`);
});

Deno.test("a bad file keeps the old one, and log, metrics and readiness say so", () => {
  const { reloads, pair, timers, tell, said, metric } = stage();
  pair.there = new FileError("Cannot use a.crt: it holds nothing");
  tell("a.crt");
  timers.advance(CONTRADICTION_MS);
  assertEquals(said(), [
    "error: Cannot use a.crt: it holds nothing; the earlier content stays in use",
  ]);
  assertEquals(pair.inUse, "1");
  const stale = 't_reload_stale{kind="pair"}';
  const failures = 't_reload_failures_total{kind="pair"}';
  assertEquals(metric(stale), `${stale} 1`);
  assertEquals(metric(failures), `${failures} 1`);
  assertStringIncludes(reloads.notes.join(), "pair: the new file cannot be");
  pair.there = "1";
  tell("a.crt");
  assertEquals(said(), ["info: pair: the files are good again"]);
  assertEquals(metric(stale), `${stale} 0`);
  assertEquals(reloads.notes, []);
});

Deno.test("who asks receives the state of every source, and failures at once", () => {
  const { reloads, pair, policy, said } = stage();
  pair.there = new FileError("bad");
  policy.there = "2";
  reloads.reload();
  reloads.reload();
  assertEquals(said(), [
    "error: bad; the earlier content stays in use",
    "info: policy: now 2",
    "error: bad; the earlier content stays in use",
    "info: policy: read again, nothing has changed",
  ]);
});

Deno.test("what is read elsewhere fares as reported", () => {
  const { reloads, metric, said } = stage();
  const outcome = reloads.follow("state");
  const failures = 't_reload_failures_total{kind="state"}';
  const stale = 't_reload_stale{kind="state"}';
  assertEquals(metric(failures), `${failures} 0`);
  outcome("roles.json: it is empty");
  // Who asks about the other files does not mend it.
  reloads.reload();
  assertEquals([metric(failures), metric(stale)], [
    `${failures} 1`,
    `${stale} 1`,
  ]);
  assertEquals(reloads.notes.length, 1);
  outcome();
  assertEquals([metric(stale), reloads.notes], [`${stale} 0`, []]);
  assertEquals(said().filter((line) => line.includes("state")), []);
});

Deno.test("a slip of ours is no reason not to read the others' files", () => {
  using recorded = new RecordedErrors();
  const { pair, policy, tell, said } = stage();
  pair.there = new TypeError("ours");
  policy.there = "2";
  tell("a.crt", "p.yaml");
  assertEquals(recorded.errors, [{ where: "file", message: "ours" }]);
  assertEquals(said(), [
    "error: an internal error; the earlier content stays in use",
    "info: policy: now 2",
  ]);
});

Deno.test("nothing is read after the end", () => {
  const { reloads, pair, timers, tell, said } = stage();
  pair.there = new FileError("bad");
  tell("a.crt");
  reloads.close();
  timers.advance(CONTRADICTION_MS);
  assertEquals(said(), []);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a file that is good only later is looked at again then", () => {
  const { reloads, pair, timers, tell, said } = stage();
  pair.there = new FileError("Cannot use a.crt: it is valid only from then", {
    goodFromMs: 1_000_000 + 60_000,
  });
  tell("a.crt");
  assertEquals(said().length, 1);
  assertStringIncludes(reloads.notes.join(), "pair: the new file cannot be");
  pair.there = "2";
  timers.advance(59_999);
  assertEquals(said(), []);
  timers.advance(1);
  assertEquals(said(), ["info: pair: now 2"]);
  assertEquals(reloads.notes, []);
});

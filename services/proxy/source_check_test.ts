import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Sink, Source } from "../catalog/model/source.ts";
import { SourceUnusableError } from "../catalog/model/source.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { endpoints, service } from "../../tests/support/rigs/proxy_rig.ts";
import { ScriptedSink } from "../../tests/support/watch/scripted_source.ts";
import { PLAN_TIMEOUT_MS } from "./dns/planned_names.ts";
import { checkSources, PROBLEMS_MAX } from "./source_check.ts";

const PORTS = {
  kind: "ports",
  host: "127.0.0.1",
  first: 20_000,
  last: 29_999,
} as const;

/** Says what a test has it say, and counts how often it was ended. */
class ScriptedOnce implements Source {
  ended = 0;
  prepare?: () => Promise<void>;

  constructor(
    readonly name: string,
    private readonly say: (sink: ScriptedSink) => void,
  ) {}

  start(sink: Sink): void {
    this.say(new ScriptedSink(sink));
  }

  stop(): Promise<void> {
    this.ended++;
    return Promise.resolve();
  }

  reconcile(): Promise<void> {
    return Promise.resolve();
  }
}

function check(...sources: readonly Source[]) {
  return checkSources({ sources, addresses: PORTS }, new FakeTimers());
}

const at = (port: number) => ({
  ports: [{ name: "", port: 80, protocol: "tcp" as const, listen: { port } }],
});

Deno.test("sources in order are counted, and nothing is wrong", async () => {
  const first = new ScriptedOnce("file", (sink) => {
    sink.set({ services: [service("web")] });
    sink.synced();
  });
  const second = new ScriptedOnce("etcd", (sink) => {
    sink.add({
      services: [service("web", at(1)), service("db")],
      endpoints: [endpoints("web", [1, 2]), endpoints("gone", [3])],
    });
    sink.synced();
  });
  assertEquals(await check(first, second), {
    sources: [
      { name: "file", services: 1, endpoints: 0 },
      { name: "etcd", services: 2, endpoints: 3 },
    ],
    problems: [],
    notes: [
      "default/gone has endpoints, and there is no such service",
      "default/db has no endpoint",
    ],
  });
  assertEquals([first.ended, second.ended], [1, 1]);
});

Deno.test("all that is wrong is said, each by its source", async () => {
  const unusable = new ScriptedOnce("file", () => {
    throw new Error("it is not started");
  });
  unusable.prepare = () =>
    Promise.reject(new SourceUnusableError("Cannot use s.yaml: no"));
  const away = new ScriptedOnce("etcd", (sink) => {
    sink.failed("nobody answers");
    sink.failed("still nobody");
  });
  const partly = new ScriptedOnce("kubernetes", (sink) => {
    sink.refused("an annotation");
    sink.set({
      services: [service("a b"), service("a", at(80)), service("b", at(80))],
    });
    sink.synced();
    sink.refused("later");
  });
  const { problems } = await check(unusable, away, partly);
  assertEquals(problems.toSpliced(3, 1), [
    "file: Cannot use s.yaml: no",
    "etcd: nobody answers",
    "kubernetes: an annotation",
    "default/a and default/b both want 127.0.0.1:80 (tcp)",
  ]);
  assertStringIncludes(problems[3]!, "kubernetes: ");
  assertStringIncludes(problems[3]!, "a b");
});

Deno.test("a source that is silent is wrong after ten seconds", async () => {
  const timers = new FakeTimers();
  const started = Promise.withResolvers<void>();
  const silent = new ScriptedOnce("discovery", () => started.resolve());
  const report = checkSources({ sources: [silent], addresses: PORTS }, timers);
  await started.promise;
  timers.advance(PLAN_TIMEOUT_MS);
  assertEquals((await report).problems, ["discovery: no answer in 10 s"]);
  assertEquals([silent.ended, timers.pendingCount], [1, 0]);
});

Deno.test("a range that is too small, and many of a kind, are short", async () => {
  const many = new ScriptedOnce("file", (sink) => {
    const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
    sink.set({ services: names.map((name) => service(name)) });
    sink.synced();
  });
  const { problems, notes } = await checkSources({
    sources: [many],
    addresses: { ...PORTS, last: PORTS.first + 1 },
  }, new FakeTimers());
  assertEquals([problems.length, notes.length], [
    PROBLEMS_MAX + 1,
    PROBLEMS_MAX + 1,
  ]);
  assertStringIncludes(problems[0]!, "served nowhere: all places are taken");
  assertEquals(problems.at(-1), "and 198 more like these");
});

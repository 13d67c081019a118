import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import { Catalog } from "../catalog.ts";
import { COPY_SILENT_MS } from "../source_input.ts";
import type { Source } from "./source.ts";
import { COPY_SAVE_DELAY_MS, SourceCopy } from "./source_copy.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";

/** Lives of one proxy, one after the other, with one folder. */
async function inFolder(
  act: (
    live: (place?: string) => Life,
    path: string,
  ) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/copies/etcd`;
  try {
    await act((place = "etcd a") => new Life(path, place), path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

class Life implements AsyncDisposable {
  readonly source: ScriptedSource & Source = new ScriptedSource("etcd");
  readonly timers = new FakeTimers();
  readonly log = new RecordedLog();
  readonly catalog: Catalog;

  constructor(path: string, place: string) {
    const { source, timers, log } = this;
    source.copy = new SourceCopy({
      ...{ source: source.name, path, place, log, timers },
      now: () => Date.UTC(2026, 0, 2),
    });
    this.catalog = new Catalog({
      ...{ sources: [source], log, timers, random: () => 0.5 },
    });
    this.catalog.start();
  }

  get names(): readonly string[] {
    return [...this.catalog.snapshot.services.keys()].sort();
  }

  get problem(): string | undefined {
    return this.catalog.status[0]!.problem;
  }

  /** The source is away; waits until the copy is served, or is found missing. */
  async away(): Promise<void> {
    this.source.sink.failed("Cannot reach etcd", 1_000);
    await until(() => this.problem !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.catalog.stop();
  }
}

const WEB = {
  services: [serviceOf("web", 80), serviceOf("db", 5432)],
  endpoints: [endpointsOf("web", "10.0.0.1:80")],
};

/** A life in which the source is there. */
async function say(life: Life): Promise<void> {
  await using living = life;
  living.source.sink.set(WEB);
  living.source.sink.synced();
  living.timers.advance(COPY_SAVE_DELAY_MS);
}

Deno.test("started while its source is away, a proxy serves what was said last", () =>
  inFolder(async (live, path) => {
    await say(live());
    assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
    await using next = live();
    assertEquals(next.names, []);
    await next.away();
    assertEquals(next.names, ["default/db", "default/web"]);
    assertEquals(
      next.catalog.snapshot.endpoints.get("default/web")?.[0]?.address,
      "10.0.0.1",
    );
    assert(next.catalog.isSynced);
    assertStringIncludes(next.problem!, "what it said until 2026-01-02T00:00");
    // It comes back, and what is gone meanwhile is gone.
    next.source.sink.add({ services: [serviceOf("new", 1)] });
    next.source.sink.synced();
    assertEquals(next.names, ["default/new"]);
    assertEquals(next.problem, undefined);
  }));

Deno.test("what a source said before its copy was served counts when it is back", () =>
  inFolder(async (live) => {
    await say(live());
    await using next = live();
    next.source.sink.add({ services: [serviceOf("early", 1)] });
    await next.away();
    assertEquals(next.names, ["default/db", "default/web"]);
    next.source.sink.synced();
    assertEquals(next.names, ["default/early"]);
  }));

Deno.test("a source that says nothing is not waited for", () =>
  inFolder(async (live) => {
    await say(live());
    await using next = live();
    next.timers.advance(COPY_SILENT_MS);
    await until(() => next.names.length > 0);
    assertEquals(next.names.length, 2);
  }));

Deno.test("a source that speaks is believed, and its copy not looked at", () =>
  inFolder(async (live) => {
    await say(live());
    await using next = live();
    next.source.sink.set({ services: [serviceOf("other", 1)], endpoints: [] });
    next.source.sink.synced();
    next.timers.advance(COPY_SILENT_MS);
    await next.away();
    assertEquals(next.names, ["default/other"]);
    assertEquals(next.problem, "Cannot reach etcd");
  }));

Deno.test("half a list is no copy", () =>
  inFolder(async (live, path) => {
    {
      await using first = live();
      first.source.sink.add({ services: [serviceOf("half", 1)] });
      first.timers.advance(COPY_SAVE_DELAY_MS * 2);
    }
    assertEquals(await Deno.stat(path).catch(() => "none"), "none");
  }));

Deno.test("a copy that is damaged, open to others or of another place is not used", () =>
  inFolder(async (live, path) => {
    await say(live());
    const good = await Deno.readTextFile(path);
    const damage: Record<string, () => Promise<void>> = {
      "cut off": () => Deno.writeTextFile(path, good.slice(0, -20)),
      "one letter": () => Deno.writeTextFile(path, good.replace("web", "wob")),
      "empty": () => Deno.writeTextFile(path, ""),
      "no copy": () => Deno.writeTextFile(path, "[]\n"),
      "open": () => Deno.chmod(path, 0o666),
    };
    for (const [what, spoil] of Object.entries(damage)) {
      await Deno.writeTextFile(path, good);
      await Deno.chmod(path, 0o600);
      await spoil();
      await using next = live();
      await next.away();
      assertEquals([next.names, next.problem], [[], "Cannot reach etcd"], what);
      assertStringIncludes(
        next.log.lines[0]!.message,
        "Cannot use the copy of a source",
      );
    }
    await Deno.chmod(path, 0o600);
    await Deno.writeTextFile(path, good);
    await using other = live("etcd b");
    await other.away();
    assertEquals(other.names, []);
  }));

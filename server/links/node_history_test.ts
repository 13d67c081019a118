import { assertEquals, assertMatch } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { until } from "../../tests/support/watch/event_loop.ts";
import {
  HISTORY_FILE,
  HISTORY_MAX,
  INTERVAL_MS,
  NodeHistory,
  REWRITE_MS,
} from "./node_history.ts";

const START_MS = Date.parse("2026-01-02T03:04:05Z");

function history(
  folder: string | undefined,
  now: { ms: number },
  timers = new FakeTimers(),
) {
  return new NodeHistory({
    ...{ folder, log: new RecordedLog() },
    ...{ timers, wallMs: () => now.ms },
  });
}

Deno.test("since when nodes are gone survives a restart", () =>
  inMemoryFolder(async (folder) => {
    const now = { ms: START_MS };
    const first = history(folder, now);
    await first.load();
    const [gone, stays] = [new FakeLink("gone"), new FakeLink("stays")];
    first.linked("gone", gone);
    first.linked("gone", new FakeLink("gone"));
    first.linked("stays", stays);
    now.ms += 1_000;
    first.unlinked("gone", "one of two");
    assertEquals(first.of("gone")!.isLinked, true);
    first.unlinked("gone", "the line was cut");
    now.ms += 60_000;
    // What ends now says nothing of the nodes.
    first.freeze();
    first.unlinked("stays", "the server is stopping");
    now.ms += 5_000;
    await first.close();
    const second = history(folder, now);
    await second.load();
    const { since, reason, isLinked } = second.of("gone")!;
    assertEquals([since, reason, isLinked], [
      "2026-01-02T03:04:06.000Z",
      "the line was cut",
      false,
    ]);
    const away = second.of("stays")!;
    assertEquals([away.isLinked, away.sinceMs], [false, now.ms - 5_000]);
    assertMatch(away.reason, /^this server was restarted/);
    now.ms += 1_000;
    second.linked("stays", stays);
    assertEquals(second.of("stays")!.sinceMs, now.ms);
    await second.close();
  }));

Deno.test("after a crash nodes are gone since the server last wrote, which is not long", () =>
  inMemoryFolder(async (folder) => {
    const now = { ms: START_MS };
    const timers = new FakeTimers();
    const crashing = history(folder, now, timers);
    await crashing.load();
    const link = new FakeLink("edge-1");
    crashing.linked("edge-1", link);
    const path = `${folder}/${HISTORY_FILE}`;
    const isSavedAt = (ms: number) => {
      try {
        const [head = ""] = Deno.readTextFileSync(path).split("\n");
        return JSON.parse(head).savedMs === ms;
      } catch {
        return false; // Not there yet.
      }
    };
    timers.advance(INTERVAL_MS);
    await until(() => isSavedAt(START_MS));
    // Nothing changes for a day.
    now.ms += 86_400_000;
    timers.advance(REWRITE_MS);
    // The first write may not be over yet, although its file is there.
    await until(() => {
      timers.advance(INTERVAL_MS);
      return isSavedAt(now.ms);
    });
    crashing.unlinked("edge-1", "gone");
    crashing.freeze();
    await crashing.close();
    assertEquals(timers.pendingCount, 0);
  }));

Deno.test("a damaged file is no reason not to start, and names fill no memory", () =>
  inMemoryFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/nodes-seen.jsonl`, "{}\n[1]\n", {
      mode: 0o600,
    });
    const now = { ms: START_MS };
    const one = history(folder, now);
    await one.load();
    for (let at = 0; at < HISTORY_MAX + 10; at++) {
      one.linked(`n${at}`, new FakeLink(`n${at}`));
      one.unlinked(`n${at}`, "gone");
    }
    assertEquals([...one.names].length, HISTORY_MAX);
    assertEquals(one.of("n0"), undefined);
    await one.close();
  }));

import { programInfo } from "../../net/admin/own_facts.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { RecentEvents } from "../../platform/log/recent_events.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { nodeRoutes } from "./agent_routes.ts";

/** What a proxy says of itself whose sources are these. */
async function statusOf(
  sources: NonNullable<StatusAnswer["sources"]>,
): Promise<StatusAnswer> {
  const routes = nodeRoutes({
    conduits: new LiveConduits(new FakeTimers()),
    events: new RecentEvents(),
    program: () =>
      programInfo({
        ...{ program: "proxy", id: "p1", addresses: {} },
        ...{ isReady: true, isDraining: false },
      }),
    certificates: () => [],
    warnings: () => [],
    parts: () => ({ sources }),
  });
  const route = routes.find(({ path }) => path === ADMIN_PATHS.status)!;
  return await route.answer({
    ...{ url: new URL("http://x/"), segment: "", body: undefined },
    who: { role: "view", name: "test" },
    signal: new AbortController().signal,
  }) as StatusAnswer;
}

Deno.test("a proxy warns of a file that it cannot use", async () => {
  const problem = "line 1: port: saw 0, wanted 1 to 65535";
  const { warnings } = await statusOf([
    { name: "etcd", isSynced: true },
    { name: "file", isSynced: true, problem },
    { name: "http", isSynced: false },
  ]);
  const told = warnings.filter(({ code }) => code === "TUN701");
  assertEquals(told.map(({ severity }) => severity), ["error", "warning"]);
  assertMatch(told[0]!.message, /^Source http: it has not answered yet/);
  assertEquals(
    told[1]!.message,
    `Source file: ${problem}; its last state stays in use`,
  );
});

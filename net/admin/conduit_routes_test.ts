import { assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { RecentEvents } from "../../platform/log/recent_events.ts";
import { type AdminAction, adminApi } from "./admin_api.ts";
import { conduitRoutes } from "./conduit_routes.ts";

Deno.test("conduits and events are listed, and ended by who may", async () => {
  const conduits = new LiveConduits(new FakeTimers());
  const events = new RecentEvents();
  let killed = "";
  conduits.dialBegins({
    id: "0123456789abcdef",
    askedMs: 0,
    facts: { who: "CN=bob", node: "edge-1" },
    kill: (reason) => killed = reason,
  });
  events.note("linked", "agent linked", { node: "edge-1" });
  const done: AdminAction[] = [];
  let role: "view" | "operate" = "view";
  const api = adminApi(conduitRoutes({ conduits, events }), {
    who: () => ({ role, name: "alice" }),
    did: (action) => done.push(action),
  });
  const ask = async (method: string, path: string) => {
    const request = new Request(`http://x${path}`, { method });
    const response = await api(request, {} as Parameters<typeof api>[1]);
    return [response.status, await response.json()];
  };
  const [, list] = await ask("GET", "/v1/conduits?caller=bob");
  assertEquals([list.total, list.conduits[0].state], [1, "dialing"]);
  const [, one] = await ask("GET", "/v1/conduits/0123456789abcdef");
  assertEquals(one.caller, "CN=bob");
  const [, { events: listed }] = await ask("GET", "/v1/events?node=edge-1");
  assertEquals(listed[0].kind, "linked");
  const [bad, problem] = await ask("GET", "/v1/conduits?sort=luck");
  assertEquals(bad, 400);
  assertMatch(problem.message, /wanted one of rate/);
  assertEquals((await ask("GET", "/v1/conduits/none"))[0], 404);
  const path = "/v1/conduits/0123456789abcdef/kill";
  assertEquals([(await ask("POST", path))[0], killed], [403, ""]);
  role = "operate";
  assertEquals([(await ask("POST", path))[0], killed], [
    200,
    "ended by alice",
  ]);
  assertEquals(done.map(({ status }) => status), [403, 200]);
});

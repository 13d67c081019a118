import { assertEquals, assertStringIncludes } from "@std/assert";
import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { AdminFailure } from "../../net/admin/admin_api.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type {
  PathStep,
  PingAnswer,
  TraceAnswer,
} from "../../proto/admin/path_check.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { NO_PEERS } from "../../server/peers/peers.ts";
import { DialAuthorizer } from "../../server/policy/dial_authorizer.ts";
import { Policy } from "../../server/policy/policy.ts";
import { Registry } from "../../server/routing/registry.ts";
import { pingRoute } from "./ping_route.ts";
import { traceRoute } from "./trace_route.ts";
import { until } from "../../tests/support/watch/event_loop.ts";

/** An agent that answers pings at once. */
class LiveLink extends FakeLink {
  override checkLiveness(): void {
    this.heard(systemTimers.now());
  }
}

function stage(policy?: unknown) {
  const registry = new Registry({
    strategies: ["default"],
    clock: systemTimers,
    random: () => 0,
  });
  const facts = {
    registry,
    timers: systemTimers,
    peers: NO_PEERS,
    socket: "/run/front.sock",
    authorizer: new DialAuthorizer({
      ...policy === undefined ? {} : {
        policy: { current: new Policy(policy) },
      },
      refused: () => {},
    }),
  };
  const ask = async <T>(route: AdminRoute, segment: string, body: unknown) =>
    await route.answer({
      url: new URL("http://x/"),
      segment,
      body,
      who: { role: "operate", name: "test" },
      signal: new AbortController().signal,
    }) as T;
  return {
    add: (link: FakeLink) => {
      registry.add(link);
      return link;
    },
    ping: (node: string) => ask<PingAnswer>(pingRoute(facts), node, {}),
    trace: async (body: unknown) =>
      (await ask<TraceAnswer>(traceRoute(facts), "", body)).steps,
  };
}

const lastOf = (steps: readonly PathStep[]) => {
  const fault = steps.find(({ outcome }) => outcome === "failed");
  return [fault?.hop, fault?.code];
};

Deno.test("each link of a node is pinged, and no other's", async () => {
  const { add, ping } = stage();
  add(new LiveLink("edge-7", { host: ["edge-7"] }));
  add(new LiveLink("edge-7", { host: ["edge-7"] }));
  add(new LiveLink("edge-8", { host: ["edge-8"] }));
  const { links } = await ping("Edge-7");
  assertEquals(links.length, 2);
  assertEquals(links.every(({ problem }) => problem === undefined), true);
});

Deno.test("a node without a link is told from one that is silent", async () => {
  const { ping } = stage();
  const failure = await ping("edge-9").catch((error) => error);
  assertEquals(failure instanceof AdminFailure && failure.status, 404);
});

Deno.test("a trace says what the agent says, and hangs up", async () => {
  const { add, trace } = stage();
  const link = add(new LiveLink("edge-7", { host: ["edge-7"] }));
  const tracing = trace({ target: "10.0.0.7:5432", node: "edge-7" });
  await until(() => link.dials.length > 0);
  const [conduit] = MemoryConduit.pair();
  link.dials[0]!.events.onConnected(conduit);
  const steps = await tracing;
  assertEquals(steps.map(({ hop, outcome }) => `${hop} ${outcome}`), [
    "node ok",
    "policy ok",
    "link ok",
    "target ok",
  ]);
});

Deno.test("each way in which a dial fails has its code", async () => {
  for (
    const [words, code] of [
      ["dial tcp 10.0.0.7:1: connect: connection refused", "TUN503"],
      ["dial tcp 10.0.0.7:1: i/o timeout", "TUN502"],
      ["dial tcp 10.0.0.7:1: connect: no route to host", "TUN506"],
      ["dial tcp: lookup db: no such host", "TUN505"],
      ["dial tcp 10.0.0.7:1: socket: too many open files", "TUN513"],
    ] as const
  ) {
    const { add, trace } = stage();
    const link = add(new LiveLink("edge-7", { host: ["edge-7"] }));
    const tracing = trace({ target: "10.0.0.7:1", node: "edge-7" });
    await until(() => link.dials.length > 0);
    link.dials[0]!.events.onFailed(new DialError("endpoint", words));
    assertEquals(lastOf(await tracing), ["target", code]);
  }
});

Deno.test("loopback of nobody's, and a node that is not there, end a trace", async () => {
  const { add, trace } = stage();
  add(new LiveLink("edge-7", { host: ["edge-7"] }));
  add(new LiveLink("edge-8", { host: ["edge-8"] }));
  assertEquals(lastOf(await trace({ target: "127.0.0.1:22" })), [
    "node",
    "TUN508",
  ]);
  const steps = await trace({ target: "127.0.0.1:22", node: "edge-9" });
  assertEquals(lastOf(steps), ["node", "TUN501"]);
  assertEquals(steps.at(-1)!.outcome, "skipped");
});

Deno.test("a policy is asked as whoever is named, and no agent before it", async () => {
  const { add, trace } = stage({
    frontends: [{ commonName: "alice", allow: ["tcp:10.0.0.7:5432"] }],
  });
  const link = add(new LiveLink("edge-7", { host: ["edge-7"] }));
  const steps = await trace({
    target: "10.0.0.7:22",
    node: "edge-7",
    as: "alice",
  });
  assertEquals(lastOf(steps), ["policy", "TUN601"]);
  assertEquals(link.dials, []);
});

Deno.test("what is no question is refused", async () => {
  const { trace } = stage();
  for (const body of [undefined, {}, { target: 7 }, { target: "no port" }]) {
    const failure = await trace(body).catch((error) => error);
    assertEquals(failure instanceof AdminFailure && failure.status, 400);
  }
});

Deno.test("a target that names a node is traced on that node", async () => {
  const { add, trace } = stage();
  add(new LiveLink("edge-7"));
  add(new LiveLink("edge-8"));
  const link = add(new LiveLink("edge-9"));
  const tracing = trace({ target: "edge-9:22" });
  await until(() => link.dials.length > 0);
  link.dials[0]!.events.onConnected(MemoryConduit.pair()[0]);
  const steps = await tracing;
  assertEquals(lastOf(steps), [undefined, undefined]);
  assertStringIncludes(steps[0]!.message, "127.0.0.1:22 there is meant");
  assertEquals(link.dials[0]!.target.address, "127.0.0.1:22");
});

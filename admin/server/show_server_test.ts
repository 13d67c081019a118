import { assert, assertEquals, assertMatch } from "@std/assert";
import { WatchedFiles } from "../../net/tls/trust/watched_files.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  type AdminRig,
  adminScene,
} from "../../tests/support/rigs/admin_rig.ts";
import {
  activateAuthority,
  retireAuthority,
  rotateAuthority,
} from "../../server/identity/authorities.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";
import type { Warning } from "../../proto/admin/status_answer.ts";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import { until } from "../../tests/support/watch/event_loop.ts";

/** @param test What is asked of a server with two nodes, of which one is linked. */
function scene(
  name: string,
  test: (rig: AdminRig, timers: FakeTimers) => Promise<void>,
): void {
  adminScene(name, async (rig, timers) => {
    await rig.join("edge-1", { identifiers: "ipv4=10.0.0.7" });
    await rig.join("edge-2");
    await test(rig, timers);
  });
}

scene(
  "nodes are known by their records, their links and their past",
  async (rig) => {
    const link = rig.link("edge-1");
    link.roundTripMs = 12.345;
    const gone = rig.link("edge-2");
    rig.link("stranger");
    rig.connect("00000000000000a1", link);
    rig.unlink(gone, "the connection was reset by peer");
    const { body } = await rig.get("/v1/nodes");
    const nodes: NodeSummary[] = body.nodes;
    assertEquals(
      nodes.map(({ name, state, links, conduits }) =>
        `${name} ${state} ${links} ${conduits}`
      ),
      ["edge-1 online 1 1", "edge-2 offline 0 0", "stranger online 1 0"],
    );
    const [first, second] = nodes;
    assertEquals([first!.roundTripMs, first!.servers], [12.35, ["s1"]]);
    assertEquals(second!.reason, "the connection was reset by peer");
    assert(Date.now() - Date.parse(second!.since!) < 60_000);
    assertEquals(second!.address, "10.0.0.7:4711");
    const some = await rig.get("/v1/nodes?state=online&after=edge-1&limit=1");
    assertEquals(some.body.nodes.map(({ name }: NodeSummary) => name), [
      "stranger",
    ]);
    assertEquals(some.body.total, 2);
    assertEquals((await rig.get("/v1/nodes?limit=x")).status, 400);
  },
);

scene(
  "a node is described with its links, conduits and events",
  async (rig) => {
    const link = rig.link("edge-1");
    rig.connect("00000000000000a1", link);
    rig.events.note("linked", "linked from 10.0.0.7:4711", { node: "edge-1" });
    const { body } = await rig.get("/v1/nodes/edge-1");
    assertEquals(body.grants, ["ipv4=10.0.0.7"]);
    assertEquals(body.identifiers, ["host=edge-1"]);
    assertEquals(body.joinedFrom, "10.0.0.7:4711");
    assertEquals(body.linkDetails[0].state, "linked");
    assertEquals(body.conduitDetails[0].id, "00000000000000a1");
    assertEquals(body.events[0].kind, "linked");
    const unknown = await rig.get("/v1/nodes/nobody");
    assertEquals([unknown.status, unknown.body.code], [404, "TUN312"]);
  },
);

scene("a status begins with what is wrong", async (rig, timers) => {
  await rig.join("edge-3", { state: "pending" });
  const link = rig.link("edge-1");
  link.askedMs = timers.now();
  timers.advance(2_000);
  rig.duplicates.set("edge-1", Date.now());
  for (let times = 0; times < 3; times++) {
    rig.events.note("refused", `10.0.0.9:400${times}: shows no certificate`);
  }
  const { body } = await rig.get("/v1/status");
  assertEquals(
    body.warnings.map(({ code }: { readonly code: string }) => code)
      // Of tests that ran in this process before.
      .filter((code: string) => code !== "TUN907"),
    ["TUN313", "TUN320", "TUN507", "TUN402", "TUN310"],
  );
  assertMatch(body.warnings[1].message, /^Refused 3 times: 10\.0\.0\.9/);
  assertMatch(body.warnings[2].message, /no sign of life for 2\.0 s/);
  assertEquals(body.nodes.pending, 1);
  assertEquals([body.nodes.online, body.nodes.offline], [1, 1]);
  assertEquals(body.nodes.lastGone[0].name, "edge-2");
});

/** Codes and sentences of what needs attention. */
async function warned(rig: AdminRig): Promise<readonly string[]> {
  const { body } = await rig.get("/v1/status");
  const warnings: readonly Warning[] = body.warnings;
  return warnings.filter(({ code }) => code !== "TUN907")
    .map(({ code, severity, message }) => `${severity} ${code}: ${message}`);
}

scene("what was decided, and what is over, needs no attention", async (rig) => {
  rig.link("edge-1");
  rig.unlink(rig.link("edge-2"), "the machine was shut down");
  const refuse = (code: string, times = 3) => {
    for (let at = 0; at < times; at++) {
      rig.events.note("refused", `10.0.0.9:${at}: ${code}`, { code });
    }
  };
  refuse("TUN310");
  refuse("TUN311");
  const offline =
    "warning TUN402: Node edge-2 is offline: the machine was shut down";
  assertEquals(await warned(rig), [offline]);
  // Whoever is still refused has tried again since.
  rig.agoMs = 180_000;
  refuse("TUN307");
  assertEquals(await warned(rig), [offline]);
  rig.agoMs = 0;
  refuse("TUN307", 1);
  assertEquals((await warned(rig)).length, 2);
});

scene(
  "what is short, cannot be written or ends needs attention",
  async (rig, timers) => {
    rig.unlink(rig.link("edge-2"), "done");
    rig.link("edge-1");
    rig.link("edge-2");
    rig.events.note("warning", "Refusing connections on :1", {
      code: "TUN513",
    });
    const metrics = new MetricRegistry();
    const tools = { log: rig.log, timers, metrics, prefix: "other_" };
    const { program } = rig.facts;
    Object.assign(rig.facts, {
      files: new WatchedFiles(tools, () => ["Cannot write a: full", undefined]),
      program: () => ({ ...program(), isDraining: true, isReady: false }),
      problem: () => "the server is stopping",
    });
    assertEquals(await warned(rig), [
      "error TUN905: Cannot write a: full",
      "warning TUN513: Refusing connections on :1",
      "notice undefined: This server is stopping: connections go on, callers " +
      "are served, and agents and callers are sent elsewhere",
    ]);
  },
);

scene("of many offline nodes the last to go are named", async (rig) => {
  rig.link("edge-1");
  for (let at = 0; at < 5; at++) {
    const name = `gone-${at}`;
    await rig.join(name);
    rig.unlink(rig.link(name), "x");
  }
  const lines = await warned(rig);
  assertEquals(lines.length, 4);
  assertEquals(
    lines.at(-1),
    "warning undefined: … and 3 more nodes are offline: tunnel node list " +
      "--only offline",
  );
});

scene("a change of the CA is shown until its last step", async (rig) => {
  const mine = authorityIdOf(rig.authorities.current.facts);
  const certificate = {
    serialNumber: "1",
    authority: mine,
    issuedAt: new Date().toISOString(),
    expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
  };
  await rig.join("edge-1", { certificate });
  await rig.join("edge-2", { certificate });
  const notice = async () =>
    (await warned(rig)).find((line) => line.includes("TUN327"));
  assertEquals(await notice(), undefined);
  rig.authorities = await rotateAuthority(rig.state);
  assertEquals(
    await notice(),
    "notice TUN327: The CA is being changed: 0 of 2 nodes know the new " +
      "authority; next: tunnel ca activate, when all do (tunnel ca show)",
  );
  rig.authorities = await activateAuthority(rig.state);
  assertMatch((await notice())!, /0 of 2 nodes have a .*tunnel ca retire/);
  rig.authorities = await retireAuthority(rig.state);
  assertEquals(await notice(), undefined);
});

scene("the worst of a node is said with the next step", async (rig) => {
  const expires = (inMs: number) => ({
    serialNumber: "1",
    authority: "a",
    issuedAt: new Date(Date.now() - 86_400_000).toISOString(),
    expiresAt: new Date(Date.now() + inMs).toISOString(),
  });
  await rig.join("old", { certificate: expires(3_600_000) });
  await rig.join("fine", { certificate: expires(86_400_000) });
  await rig.join("given-up", { certificate: expires(-3_600_000) });
  for (const name of ["old", "fine"]) rig.link(name);
  const slow = rig.link("edge-1");
  Object.assign(slow, { roundTripMs: 400, leastRoundTripMs: 10 });
  rig.link("edge-2");
  rig.events.note("dial-failed", "connection refused", { node: "edge-2" });
  rig.link("closed");
  const denied = { node: "closed", code: "TUN601" };
  rig.events.note("dial-failed", "CN=eve: no rule allows it", denied);
  const killed = { node: "closed", code: "TUN509" };
  rig.events.note("dial-failed", "CN=eve: ended by alice", killed);
  rig.link("twin");
  rig.duplicates.set("twin", Date.now());
  rig.link("poor");
  const facts = { node: "poor", code: "TUN513" };
  rig.events.note("dial-failed", "too many open files", facts);
  const { body } = await rig.get("/v1/nodes");
  const problems = new Map<string, string | undefined>(
    body.nodes.map(({ name, problem }: NodeSummary) => [name, problem]),
  );
  assertEquals(problems.get("fine"), undefined);
  assertMatch(problems.get("old")!, /has not renewed itself/);
  assertMatch(problems.get("edge-1")!, /takes 400 ms, at best 10 ms/);
  assertEquals(
    problems.get("edge-2"),
    "a dial failed in the last 5 minutes: connection refused",
  );
  assertEquals(problems.get("closed"), undefined);
  assertEquals(
    problems.get("twin"),
    "two machines use its identity, linked now from 10.0.0.7; if the key may " +
      "be stolen, tunnel node revoke twin",
  );
  assertMatch(problems.get("poor")!, /no file descriptors left/);
  const { body: { expiries } } = await rig.get("/v1/status");
  assertEquals(expiries[0].what, "certificate of node old");
  assertMatch(problems.get("given-up")!, /its certificate expired at/);
});

scene(
  "what lacks descriptors is said first, and until it is started anew",
  async (rig) => {
    const note = (message: string, code: string) =>
      rig.events.note("dial-failed", message, { node: "poor", code });
    const codes = async () => {
      const { body } = await rig.get("/v1/nodes/poor");
      return body.warnings.map(({ code }: { readonly code: string }) => code);
    };
    const link = rig.link("poor");
    Object.assign(link.peer, { software: "tunnel/0.0.1" });
    note("socket: too many open files", "TUN513");
    assertEquals(await codes(), ["TUN513", "TUN422"]);
    note("connection refused", "TUN503");
    assertEquals(await codes(), ["TUN513", "TUN503", "TUN422"]);
    rig.unlink(link, "it ended");
    // Its links are younger than what failed.
    const sinceMs = Date.now();
    await until(() => Date.now() > sinceMs);
    rig.link("poor");
    assertEquals(await codes(), ["TUN503"]);
  },
);

scene("nodes are revoked, approved and drained by who may", async (rig) => {
  const link = rig.link("edge-1");
  const revoked = await rig.post("/v1/nodes/edge-2/revoke", {
    reason: "stolen",
  });
  assertEquals(revoked.status, 200);
  const { body } = await rig.get("/v1/nodes/edge-2");
  assertEquals([body.state, body.reason], ["revoked", "stolen"]);
  assertEquals(body.events[0].message, "revoked by alice: stolen");
  await rig.post("/v1/nodes/edge-2/approve");
  assertEquals((await rig.get("/v1/nodes/edge-2")).body.state, "offline");
  assertEquals((await rig.post("/v1/nodes/nobody/revoke")).status, 404);
  assertEquals(
    (await rig.post("/v1/nodes/edge-2/revoke", { reason: 7 })).status,
    400,
  );
  const drained = await rig.post("/v1/nodes/edge-1/drain");
  assertMatch(drained.body.message, /knows of no other/);
  assertEquals(rig.drained, ["edge-1"]);
  assertEquals(rig.registry.isHealthy(link), false);
  assertEquals((await rig.post("/v1/nodes/edge-2/drain")).status, 404);
  rig.role = "view";
  assertEquals((await rig.post("/v1/nodes/edge-1/revoke")).status, 403);
});

scene("conduits are ended, and what is not there is said", async (rig) => {
  rig.connect("00000000000000a1", rig.link("edge-1"));
  const path = "/v1/conduits/00000000000000a1";
  assertEquals((await rig.get(path)).body.node, "edge-1");
  assertEquals((await rig.post(`${path}/kill`)).status, 200);
  await settled();
  assertEquals((await rig.get(path)).status, 404);
  for (const list of ["services", "discovery", "audit"]) {
    assertEquals((await rig.get(`/v1/${list}`)).status, 404, list);
  }
  assertEquals((await rig.get("/v1/config")).body, { flags: [] });
});

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import { LAST_SEEN_MAX, Registry } from "./registry.ts";
import type { StrategyName } from "../options.ts";
import { targetHost } from "../strategies/strategy.ts";

// Upstream's unit tests are named beside the scenario that covers them, so that
// a search for one of its names ends here.

function setUp(...strategies: StrategyName[]) {
  const clock = { nowMs: 1000, now: () => clock.nowMs };
  const prng = new Prng(7);
  const random = () => prng.below(1 << 20) / (1 << 20);
  const registry = new Registry({ strategies, clock, random });
  const add = (agentId: string, given: Partial<Identifiers> = {}) => {
    const link = new FakeLink(agentId, given);
    link.lastHeardMs = clock.nowMs;
    registry.add(link);
    return link;
  };
  /** Which agents serve `address`, asked often enough to see all of them. */
  const served = (address: string, node?: string) => {
    const seen = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const picked = registry.pick({ protocol: "tcp", address }, node);
      if (picked.kind === "picked") seen.add(picked.link.peer.agentId);
    }
    return [...seen].sort();
  };
  return { clock, registry, add, served };
}

Deno.test("default spreads dials over all agents (TestAddRemoveBackends_DefaultStrategy)", () => {
  const { registry, add, served } = setUp("default");
  assertEquals(served("x:1"), []);
  const a = add("a");
  add("b");
  add("c");
  assertEquals(served("x:1"), ["a", "b", "c"]);
  registry.remove(a);
  assertEquals(served("x:1"), ["b", "c"]);
});

Deno.test("agents share short dials alike, also one whose goodbyes take longer", () => {
  const { registry, add } = setUp("defaultRoute");
  const ours = add("ours", { defaultRoute: true });
  const theirs = add("theirs", { defaultRoute: true });
  const counts = { ours: 0, theirs: 0 };
  for (let dial = 0; dial < 2_000; dial++) {
    const picked = registry.pick({ protocol: "tcp", address: "x:1" });
    assert(picked.kind === "picked");
    counts[picked.link.peer.agentId as keyof typeof counts]++;
    // The one before is over; a stream counts until its end was answered.
    ours.load = ours.ending = picked.link === ours ? 1 : 0;
    theirs.load = 0;
  }
  assert(Math.abs(counts.ours - counts.theirs) < 120, JSON.stringify(counts));
});

Deno.test("defaultRoute asks only agents that announced it (TestAddRemoveBackends_DefaultRouteStrategy)", () => {
  const { add, served } = setUp("defaultRoute");
  add("a");
  add("b", { defaultRoute: true });
  assertEquals(served("x:1"), ["b"]);
});

// TestAddRemoveBackends_DestHostStrategy, TestAddRemoveBackends_DestHostSanitizeRequest
Deno.test("destHost compares hosts, without their port", () => {
  const { registry, add, served } = setUp("destHost");
  add("name", { host: ["node1"] });
  add("v4", { ipv4: ["1.2.3.4"] });
  const v6 = add("v6", { ipv6: ["2001:db8::1"] });
  assertEquals(served("node1:80"), ["name"]);
  assertEquals(served("NODE1:80"), ["name"]);
  assertEquals(served("1.2.3.4:443"), ["v4"]);
  assertEquals(served("[2001:0DB8:0:0::1]:443"), ["v6"]);
  assertEquals(served("2001:db8::1"), ["v6"]);
  assertEquals(served("other:80"), []);
  registry.remove(v6);
  assertEquals(served("[2001:db8::1]:443"), []);
});

Deno.test("strategies are asked in the given order (TestAddRemoveBackends_DestHostWithDefault)", () => {
  const { add, served } = setUp("destHost", "default");
  add("a", { host: ["node1"] });
  add("b");
  assertEquals(served("node1:80"), ["a"]);
  assertEquals(served("elsewhere:80"), ["a", "b"]);
});

Deno.test("agents with equal identifiers share them (TestAddRemoveBackends_DestHostWithDuplicateIdents)", () => {
  const { registry, add, served } = setUp("destHost");
  const a = add("a", { host: ["node1", "node1"], ipv4: ["1.2.3.4"] });
  add("b", { host: ["node1"] });
  assertEquals(served("node1:80"), ["a", "b"]);
  registry.remove(a);
  assertEquals(served("node1:80"), ["b"]);
  assertEquals(served("1.2.3.4:80"), []);
});

Deno.test("cidr picks the longest prefix around the address", () => {
  const { registry, add, served } = setUp("cidr");
  add("wide", { cidr: ["10.0.0.0/8", "::/0"] });
  const narrow = add("narrow", { cidr: ["10.1.0.0/16", "10.1.2.3/16"] });
  assertEquals(served("10.1.2.3:80"), ["narrow"]);
  assertEquals(served("10.2.2.3:80"), ["wide"]);
  assertEquals(served("[2001:db8::1]:80"), ["wide"]);
  assertEquals(served("11.0.0.1:80"), []);
  assertEquals(served("name:80"), []);
  registry.remove(narrow);
  assertEquals(served("10.1.2.3:80"), ["wide"]);
});

Deno.test("a draining agent serves only when nobody else does (DrainingFallback)", () => {
  for (const strategy of ["default", "destHost"] as const) {
    const { add, served } = setUp(strategy);
    const a = add("a", { host: ["node1"] });
    const b = add("b", { host: ["node1"] });
    a.isDraining = true;
    assertEquals(served("node1:80"), ["b"]);
    b.isDraining = true;
    assertEquals(served("node1:80"), ["a", "b"]);
  }
});

Deno.test("a newer link is preferred to an older silent one of the same agent", () => {
  const { clock, registry, add } = setUp("default");
  const dead = add("a");
  clock.nowMs += 5000;
  const fresh = add("a");
  const picks = () =>
    new Set(Array.from({ length: 50 }, () => {
      const picked = registry.pick({ protocol: "tcp", address: "x:1" });
      return picked.kind === "picked" ? picked.link : undefined;
    }));
  assertEquals(picks(), new Set([fresh]));
  assertEquals([dead.asked, fresh.asked], [1, 0]);
  fresh.bulkConduits = 1;
  assertEquals(picks(), new Set([fresh]));
  dead.lastHeardMs = clock.nowMs + 1; // it was alive after all
  assertEquals(picks(), new Set([dead]));
});

Deno.test("the newest link is used at once, though it sent something before it came", () => {
  const { clock, registry, add, served } = setUp("default");
  add("a").isDraining = true;
  clock.nowMs += 5;
  const link = new FakeLink("a");
  link.lastHeardMs = clock.nowMs - 1;
  registry.add(link);
  served("x:1");
  const picked = registry.pick({ protocol: "tcp", address: "x:1" });
  assert(picked.kind === "picked" && picked.link === link);
});

Deno.test("two links of an agent are one agent: what loads one loads both", () => {
  const { registry, add, served } = setUp("default");
  const [first, second] = [add("a"), add("a")];
  first.load = 5;
  second.load = 5;
  add("b").load = 8;
  assertEquals(served("x:1"), ["b"]);
  registry.remove(first);
  assertEquals(served("x:1"), ["a"]);
});

Deno.test("agents are drawn alike, however many links they have", () => {
  for (const strategy of ["default", "destHost", "cidr"] as const) {
    const { registry, add } = setUp(strategy);
    const given = { host: ["10.0.0.1"], cidr: ["10.0.0.0/8"] };
    const links = { one: 1, many: 16, late: 1 };
    for (const [agent, count] of Object.entries(links)) {
      for (let made = 0; made < count; made++) add(agent, given);
    }
    const dials = 6_000;
    const drawn = new Map<string, number>();
    for (let dial = 0; dial < dials; dial++) {
      const picked = registry.pick({ protocol: "tcp", address: "10.0.0.1:1" });
      assert(picked.kind === "picked");
      const { agentId } = picked.link.peer;
      drawn.set(agentId, (drawn.get(agentId) ?? 0) + 1);
    }
    for (const agent of Object.keys(links)) {
      const share = (drawn.get(agent) ?? 0) / dials;
      assert(Math.abs(share - 1 / 3) < 0.03, `${strategy} ${agent}: ${share}`);
    }
  }
});

Deno.test("an agent whose first link goes is drawn by the others", () => {
  const { registry, add, served } = setUp("default", "destHost");
  const links = [1, 2, 3].map(() => add("a", { host: ["one"] }));
  add("b");
  for (const link of links) {
    assertEquals(served("x:1"), ["a", "b"]);
    assertEquals(served("x:1", "one"), ["a"]);
    registry.remove(link);
  }
  assertEquals(served("x:1"), ["b"]);
  assertEquals(served("x:1", "one"), []);
});

Deno.test("a dial may name its agent by uid or by prefix, and means that one only", () => {
  const { registry, add, served } = setUp("default");
  add("a", { uid: ["7"], cidr: ["10.1.0.0/16"] });
  const b = add("b", { uid: ["8"], cidr: ["10.1.2.0/24"] });
  add("c", { host: ["7", "10.1.0.0"] });
  assertEquals(served("x:1", "uid=7"), ["a"]);
  assertEquals(served("x:1", "cidr=10.1.0.0/16"), ["a"]);
  assertEquals(served("x:1", "cidr=10.1.2.0/24"), ["b"]);
  assertEquals(served("x:1", "host=7"), ["c"]);
  assertEquals(served("x:1", "7"), ["c"]);
  registry.remove(b);
  assertEquals(served("x:1", "uid=8"), []);
  const refused = registry.pick({ protocol: "tcp", address: "x:1" }, "uid=8");
  assert(refused.kind === "noAgent");
  assertStringIncludes(refused.message, "no agent serves uid=8; last seen");
});

Deno.test("an agent that announces nothing is reached by its own name", () => {
  const { registry, add, served } = setUp("destHost");
  const plain = add("Plain");
  add("other", { host: ["Plain"], uid: ["Plain"] });
  assertEquals(served("x:1", "id=Plain"), ["Plain"]);
  assertEquals(served("x:1", "id=plain"), []);
  add("n1");
  assertEquals(served("x:1", "id=N1"), ["n1"], "as nodes join");
  add("Plain");
  registry.remove(plain);
  assertEquals(served("x:1", "id=Plain"), ["Plain"]);
  const refused = registry.pick({ protocol: "tcp", address: "x:1" }, "id=c");
  assert(refused.kind === "noAgent");
  assertStringIncludes(refused.message, "no agent serves id=c; never seen");
});

Deno.test("a refusal says which node, and since when", () => {
  const { clock, registry, add } = setUp("destHost");
  const refusal = (address: string) => {
    const picked = registry.pick({ protocol: "tcp", address });
    assert(picked.kind === "noAgent");
    return picked.message;
  };
  assertEquals(
    refusal("node7:80"),
    "No agent available: no agent is connected (never seen)",
  );
  const link = add("a", { host: ["Node7"] });
  add("b", { host: ["node8"] });
  registry.remove(link);
  clock.nowMs += 42_000;
  assertEquals(
    refusal("node7:80"),
    "No agent available: no agent serves host=node7; last seen 42 s ago from 10.0.0.7",
  );
  assertStringIncludes(refusal("node9:80"), "never seen");
});

Deno.test("what is remembered of agents that are gone is bounded", () => {
  const { registry, add } = setUp("destHost");
  add("stays");
  for (let i = 0; i < LAST_SEEN_MAX + 5; i++) {
    registry.remove(add(`a${i}`, { host: [`n${i}`] }));
  }
  const message = (host: string) => {
    const picked = registry.pick({ protocol: "tcp", address: `${host}:1` });
    return picked.kind === "noAgent" ? picked.message : "";
  };
  assertStringIncludes(message("n0"), "never seen");
  assertStringIncludes(message(`n${LAST_SEEN_MAX + 4}`), "last seen");
});

Deno.test("agents are counted by id, links by object (TestReadyBackendsMetric)", () => {
  const { registry, add } = setUp("destHost", "default");
  assertEquals(registry.isReady, false);
  const first = add("a", { host: ["h"], ipv4: ["1.1.1.1"] });
  const second = add("a", { host: ["h"] });
  assertEquals(registry.links.size, 2);
  assertEquals(registry.agentCounts(), [
    { strategy: "destHost", agents: 1 },
    { strategy: "default", agents: 1 },
  ]);
  assertEquals(registry.isReady, true);
  registry.remove(first);
  registry.remove(first);
  assertEquals(registry.agentCounts()[0]?.agents, 1);
  registry.remove(second);
  assertEquals(registry.isReady, false);
});

Deno.test("targetHost() takes the port off as Konnectivity does", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["host:80", "host"],
    ["host", "host"],
    ["1.2.3.4:80", "1.2.3.4"],
    ["[::1]:80", "::1"],
    ["[::1]", "::1"],
    ["::1", "::1"],
  ];
  for (const [address, host] of cases) assertEquals(targetHost(address), host);
});

Deno.test("an address is looked up in all the spellings that reach it", () => {
  const { add, served } = setUp("destHost", "cidr", "default");
  add("gw", { ipv4: ["10.9.0.2"] });
  add("net", { cidr: ["10.1.0.0/16"] });
  add("named", { host: ["db.internal"], uid: ["abc"] });
  for (const host of ["10.9.0.2", "10.9.2", "0xa.9.0.2", "168361986"]) {
    assertEquals(served(`${host}:80`), ["gw"], host);
    assertEquals(served("x:1", host), ["gw"], host);
  }
  assertEquals(served("[::ffff:10.9.0.2]:80"), ["gw"]);
  for (const host of ["10.1.2.3", "10.1.515", "012.1.2.3"]) {
    assertEquals(served(`${host}:80`), ["net"], host);
  }
  for (const host of ["db.internal", "DB.Internal.", "host=db.internal."]) {
    assertEquals(served("x:1", host), ["named"], host);
  }
  assertEquals(served("x:1", "uid=ABC"), ["named"]);
  assertEquals(served("x:1", "cidr=10.1.7.7/16"), ["net"]);
});

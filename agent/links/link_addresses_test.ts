import { assert, assertEquals } from "@std/assert";
import {
  setUp,
  setUpWorld,
  type World,
} from "../../tests/support/rigs/link_attempts.ts";
import {
  LEARNED_MAX,
  LEARNED_WITHIN_MS,
  SERVERS_ONE_ID_MS,
} from "./agent_links.ts";
import { EXPLAINED_CAP_MS, LINK_LOOK_MS } from "./retry_waits.ts";

Deno.test("each address is wanted by itself, whatever count is reported", async () => {
  for (const count of [1, 2]) {
    const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s2/p1" }, { count });
    const { world } = s;
    await s.run(1_000);
    assertEquals(s.agentLinks.linkedServers, 2);
    for (const awayMs of [3_000, 30_000, 120_000]) {
      await s.run(60_000);
      world.set("b:1", undefined);
      await s.links.get("b:1")!.lose("killed");
      await s.run(awayMs);
      world.set("b:1", "s2/p2");
      const sinceMs = s.timers.now();
      while (s.agentLinks.linkedServers < 2) await s.run(50);
      const tookMs = s.timers.now() - sinceMs;
      assert(tookMs <= 2_000, `count ${count}, ${awayMs}: ${tookMs} ms`);
      await s.run(2_000);
    }
  }
});

Deno.test("an address that never existed costs the other nothing", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "gone:1": undefined });
  await s.run(1_200_000, 200);
  assertEquals(s.attemptsAt("a:1"), 1);
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assert(s.attemptsAt("gone:1", sinceMs) <= 24, "about every 4 s");
});

Deno.test("a server that is away leads to no storm on those that are linked", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s2/p1" }, { count: 2 });
  const { world } = s;
  await s.run(5_000);
  world.set("b:1", undefined);
  await s.links.get("b:1")!.lose("killed");
  const sinceMs = s.timers.now();
  await s.run(3_000);
  assert(s.attemptsAt("a:1", sinceMs) <= 3);
  await s.run(600_000, 200);
  // It might be a balancer before the one that is missing.
  const asked = s.attemptsAt("a:1", sinceMs);
  assert(asked > 10 && asked < 30, `${asked} attempts in ten minutes`);
  assert(EXPLAINED_CAP_MS === 60_000);
});

Deno.test("a balancer before three servers, and an address that is dead", async () => {
  const s = setUpWorld({
    "lb:1": ["s1", "s1", "s2", "s1", "s2", "s3"],
    "dead:1": undefined,
  }, { count: 3 });
  await s.run(5_000);
  assertEquals(s.agentLinks.linkedServers, 3);
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assertEquals(s.attemptsAt("lb:1", sinceMs), 0);
});

Deno.test("two addresses of one server: the second keeps no links, and takes over", async () => {
  const s = setUpWorld({ "name:1": "s1/p1", "10.0.0.1:1": "s1/p1" });
  const { world } = s;
  await s.run(60_000);
  assertEquals(s.said, ["linked s1"]);
  const looked = s.attemptsAt("10.0.0.1:1");
  assert(looked >= 2 && looked <= 5, `${looked} looks in a minute`);
  // The name leads nowhere now; the server is still there.
  world.set("name:1", undefined);
  await s.links.get("name:1")!.lose("the name is gone");
  await s.run(200);
  assertEquals(s.agentLinks.linkedServers, 1);
  await s.run(3_600_000, 1_000);
  world.set("name:1", "s1/p1");
  await s.run(10_000);
  const sinceMs = s.timers.now();
  await s.run(3_600_000, 1_000);
  const looks = s.attemptsAt("name:1", sinceMs);
  assert(
    looks <= 2 * 3_600_000 / LINK_LOOK_MS.cap,
    `${looks} looks in an hour`,
  );
});

Deno.test("an alias that turns out to lead elsewhere is linked to, too", async () => {
  const s = setUpWorld({ "a:1": "s1", "lb:1": ["s1", "s2"] });
  await s.run(LINK_LOOK_MS.first);
  assertEquals(s.agentLinks.linkedServers, 2);
});

Deno.test("two addresses that race for one server make no second link", async () => {
  const s = setUp({ addresses: ["a:1", "b:1"] });
  const [one, other] = s.attempts;
  assert(one!.events.claim({ serverId: "s1" }, "streams"));
  await other!.succeed("s1");
  s.timers.advance(1_000);
  assertEquals(s.said, []);
  // Whoever was first does not get there: the other one does.
  await one!.fail("cut off");
  s.timers.advance(200);
  const last = s.attempts.at(-1)!;
  await last.succeed("s1");
  assertEquals(s.said, ["failed: cut off", "linked s1"]);
});

Deno.test("two servers with one id are both linked, and reported once", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s1/p2" });
  await s.run(1_000);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  await s.run(10 * SERVERS_ONE_ID_MS);
  assertEquals(s.said.slice(2), ["s1 at a:1 and b:1"]);
});

Deno.test("a successor whose predecessor is not yet found dead is no second server", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s1/p1" });
  const { world } = s;
  await s.run(1_000);
  world.set("a:1", "s1/p2").set("b:1", "s1/p2");
  await s.run(LINK_LOOK_MS.first);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  await s.links.get("a:1")!.lose("no answer to PING");
  await s.run(2 * SERVERS_ONE_ID_MS);
  assert(!s.said.some((line) => line.includes("and")), `${s.said}`);
});

Deno.test("the successor of a server that is going is found, and the old link serves on", async () => {
  const s = setUpWorld({ "a:1": "s1/p1" });
  const { world } = s;
  await s.run(60_000);
  const old = s.links.get("a:1")!;
  await old.drain();
  const sinceMs = s.timers.now();
  await s.run(20_000);
  const asked = s.attemptsAt("a:1", sinceMs);
  assert(asked > 8 && asked < 15, `${asked} attempts in 20 s`);
  assertEquals([s.agentLinks.linkedServers, s.said.length], [1, 1]);
  world.set("a:1", "s1/p2");
  await s.run(10_000);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  assertEquals(old.closed, undefined);
  await old.lose("over");
  const after = s.attempts.length;
  await s.run(600_000, 1_000);
  assertEquals([s.agentLinks.linkedServers, s.attempts.length], [1, after]);
});

Deno.test("an alias of a server that is going is no storm either", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s1/p1" });
  await s.run(1_000);
  await s.links.get("a:1")!.drain();
  const sinceMs = s.timers.now();
  await s.run(20_000);
  assert(s.attemptsAt("b:1", sinceMs) < 40);
});

Deno.test("a wait that the user has said is the first one", async () => {
  const s = setUp({ intervalMs: 7_000 });
  await s.attempts[0]!.refuse();
  assert(s.retries[0]! >= 3_500 && s.retries[0]! <= 7_000);
});

Deno.test("a successor that is there at once is linked to at once", async () => {
  const s = setUpWorld({ "a:1": "s1/p1" });
  const { world } = s;
  for (let process = 2; process < 5; process++) {
    await s.run(60_000, 500);
    const old = s.links.get("a:1")!;
    await old.drain();
    await s.run(300);
    world.set("a:1", `s1/p${process}`);
    await s.run(500);
    const linked = s.said.filter((line) => line.startsWith("linked"));
    assertEquals(linked.length, process);
    await old.lose("over");
  }
});

Deno.test("who looks sees links, and why an address has none", async () => {
  const s = setUpWorld({ "a:1": "s1/p1", "b:1": "s2/p1" }, { count: 2 });
  const { world } = s;
  await s.run(5_000);
  const before = s.agentLinks.view();
  assertEquals(before.held.map(({ by, link }) => `${by} ${link.serverId}`), [
    "a:1 s1",
    "b:1 s2",
  ]);
  assertEquals(before.failing, []);
  world.set("b:1", undefined);
  const lostMs = s.timers.now();
  await s.links.get("b:1")!.lose("killed");
  assertEquals(s.agentLinks.view().failing[0]?.problem, "killed");
  await s.run(20_000);
  const { held, failing } = s.agentLinks.view();
  assertEquals(held.length, 1);
  const [trouble] = failing;
  assertEquals([trouble!.address, trouble!.sinceMs], ["b:1", lostMs]);
  assert(trouble!.failures > 2);
  assert(trouble!.isConnecting || trouble!.nextMs! > s.timers.now());
  world.set("b:1", "s2/p2");
  await s.run(10_000);
  assertEquals(s.agentLinks.view().failing, []);
});

const ALL = ["s1/aaaaaaaa a:1", "s2/bbbbbbbb b:1", "s3/cccccccc c:1"];

/** A balancer that sends everybody to `s1`, and three servers behind it. */
function balanced(
  servers: Record<string, string | undefined> = {
    "a:1": "s1/aaaaaaaa",
    "b:1": "s2/bbbbbbbb",
    "c:1": "s3/cccccccc",
  },
): World {
  const s = setUpWorld({ "lb:1": "s1/aaaaaaaa" }, { count: 3 });
  // Addresses that are not given are known to the world all the same.
  for (const [address, name] of Object.entries(servers)) {
    s.world.set(address, name);
  }
  return s;
}

Deno.test("an agent links each server by the address that a server says", async () => {
  const s = balanced();
  await s.run(100);
  s.links.get("lb:1")!.tell(ALL);
  await s.run(LEARNED_WITHIN_MS + 100);
  assertEquals(s.agentLinks.linkedServers, 3);
  assertEquals(s.attemptsAt("a:1"), 0, "that server is linked already");
  const sinceMs = s.timers.now();
  await s.run(600_000, 200);
  assertEquals(s.attempts.filter(({ atMs }) => atMs >= sinceMs).length, 0);
  await s.agentLinks.stop("end");
  assertEquals(s.timers.pendingCount, 0);
});

Deno.test("a server that is lost is linked by its own address, wherever the balancer leads", async () => {
  const s = balanced();
  const { world } = s;
  await s.run(100);
  s.links.get("lb:1")!.tell(ALL);
  await s.run(2_000);
  s.links.get("b:1")!.tell(ALL);
  world.set("lb:1", "s2/bbbbbbbb").set("a:1", undefined);
  await s.links.get("lb:1")!.lose("killed");
  await s.run(3_000);
  assertEquals(s.agentLinks.linkedServers, 2);
  world.set("a:1", "s1/dddddddd");
  await s.run(1_000);
  assertEquals(s.agentLinks.linkedServers, 3);
  assertEquals(s.links.get("a:1")!.address, "a:1");
});

Deno.test("addresses that cannot be reached cost little, and the balancer is asked on", async () => {
  const s = balanced({});
  await s.run(100);
  s.links.get("lb:1")!.tell(ALL);
  await s.run(300_000, 200);
  const sinceMs = s.timers.now();
  await s.run(600_000, 200);
  const strange = s.attemptsAt("b:1", sinceMs);
  assert(strange >= 8 && strange <= 24, `${strange} in ten minutes`);
  const asked = s.attemptsAt("lb:1", sinceMs);
  assert(asked >= 50 && asked <= 130, `the balancer: ${asked}`);
  assertEquals(s.attemptsAt("a:1"), 0);
});

Deno.test("an address that no server says any more is forgotten, and its link stays", async () => {
  const s = balanced();
  const { world } = s;
  await s.run(100);
  s.links.get("lb:1")!.tell(ALL);
  await s.run(2_000);
  s.links.get("lb:1")!.tell(ALL.slice(0, 2), 2);
  assertEquals(s.agentLinks.linkedServers, 3);
  world.set("c:1", undefined);
  await s.links.get("c:1")!.lose("gone");
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assertEquals(s.attemptsAt("c:1", sinceMs), 0);
  // It comes again, and is linked soon.
  world.set("c:1", "s3/eeeeeeee");
  s.links.get("lb:1")!.tell([...ALL.slice(0, 2), "s3/eeeeeeee c:1"]);
  await s.run(LEARNED_WITHIN_MS + 100);
  assertEquals(s.agentLinks.linkedServers, 3);
});

Deno.test("when all servers are lost what was said last counts on", async () => {
  const s = balanced();
  const { world } = s;
  await s.run(100);
  s.links.get("lb:1")!.tell(ALL);
  await s.run(2_000);
  for (const address of world.keys()) world.set(address, undefined);
  for (const link of [...s.links.values()]) await link.lose("killed");
  await s.run(20_000);
  world.set("b:1", "s2/ffffffff");
  await s.run(2_000);
  assertEquals(s.agentLinks.linkedServers, 1);
});

Deno.test("a server that two addresses lead to is linked once", async () => {
  const s = balanced({ "a:1": "s1/aaaaaaaa", "x:1": "s1/aaaaaaaa" });
  await s.run(100);
  // It is not the one that is said to be there, which is looked at seldom.
  s.links.get("lb:1")!.tell(["s9 x:1"], 1);
  await s.run(300_000, 200);
  const sinceMs = s.timers.now();
  await s.run(600_000, 200);
  const asked = s.attemptsAt("x:1", sinceMs);
  assert(asked > 0 && asked <= 20, `${asked} in ten minutes`);
  assertEquals(s.agentLinks.linkedServers, 1);
});

Deno.test("processes that share an address are all linked by it", async () => {
  const s = setUpWorld({ "lb:1": "s1/aaaaaaaa" }, { count: 4 });
  const { world } = s;
  world.set("b:1", ["s2/bbbbbbbb", "s2/bbbbbbbb", "s2-w1/cccccccc"]);
  await s.run(100);
  s.links.get("lb:1")!.tell([
    "s1/aaaaaaaa a:1",
    "s2/bbbbbbbb b:1",
    "s2-w1/cccccccc b:1",
  ]);
  await s.run(10_000);
  assertEquals(s.agentLinks.linkedServers, 3);
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assertEquals(s.attemptsAt("b:1", sinceMs), 0);
});

Deno.test("a hostile server makes an agent connect to few places, and to no nonsense", async () => {
  const s = balanced({});
  await s.run(100);
  const many = Array.from({ length: 500 }, (_, at) => `h${at} h${at}:1`);
  s.links.get("lb:1")!.tell(["u unix:/etc/passwd", "p h:99999", ...many], 1);
  s.timers.advance(LEARNED_WITHIN_MS);
  const places = new Set(s.attempts.map(({ address }) => address));
  places.delete("lb:1");
  assert(places.size <= LEARNED_MAX, `${places.size}`);
  assert([...places].every((address) => /^h\d+:1$/.test(address)));
});

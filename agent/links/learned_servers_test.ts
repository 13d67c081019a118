import { assert, assertEquals } from "@std/assert";
import {
  setUpWorld,
  type World,
} from "../../tests/support/rigs/link_attempts.ts";
import { LEARNED_WITHIN_MS } from "./agent_links.ts";
import { LEARNED_MAX } from "./learned_servers.ts";

const ALL = ["s1/aaaaaaaa a:1", "s2/bbbbbbbb b:1", "s3/cccccccc c:1"];

/** A balancer that sends everybody to `s1`, and three servers behind it. */
function balanced(
  servers: Record<string, string | undefined> = {
    "a:1": "s1/aaaaaaaa",
    "b:1": "s2/bbbbbbbb",
    "c:1": "s3/cccccccc",
  },
): { world: Map<string, string | undefined>; s: World } {
  // Addresses that are not given are known to the world all the same.
  const world = new Map<string, string | undefined>([["lb:1", "s1/aaaaaaaa"]]);
  const s = setUpWorld(world, { count: 3 });
  for (const [address, name] of Object.entries(servers)) {
    world.set(address, name);
  }
  return { world, s };
}

Deno.test("an agent links each server by the address that a server says", async () => {
  const { s } = balanced();
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
  const { world, s } = balanced();
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
  const { s } = balanced({});
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
  const { world, s } = balanced();
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
  const { world, s } = balanced();
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
  const { s } = balanced({ "a:1": "s1/aaaaaaaa", "x:1": "s1/aaaaaaaa" });
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
  const world = new Map<string, string | readonly string[] | undefined>([
    ["lb:1", "s1/aaaaaaaa"],
  ]);
  const s = setUpWorld(world, { count: 4 });
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
  const { s } = balanced({});
  await s.run(100);
  const many = Array.from({ length: 500 }, (_, at) => `h${at} h${at}:1`);
  s.links.get("lb:1")!.tell(["u unix:/etc/passwd", "p h:99999", ...many], 1);
  s.timers.advance(LEARNED_WITHIN_MS);
  const places = new Set(s.attempts.map(({ address }) => address));
  places.delete("lb:1");
  assert(places.size <= LEARNED_MAX, `${places.size}`);
  assert([...places].every((address) => /^h\d+:1$/.test(address)));
});

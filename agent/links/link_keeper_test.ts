import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { ConnectError } from "../../host/dial/agent_connect.ts";
import {
  type AttemptEvents,
  LinkKeeper,
  ONE_ID_MS,
  type ServerLink,
} from "./link_keeper.ts";
import { EXPLAINED_CAP_MS, FAILED_CAP_MS, LOOK_MS } from "./retry_waits.ts";

/** What a machine says on which no server runs. */
function refusal(): ConnectError {
  const cause = Object.assign(new Error(), { code: "ECONNREFUSED" });
  return new ConnectError("connection refused", { cause });
}

/** One attempt, and the test's hand in what comes of it. */
class Attempt {
  closed: string | undefined;
  drained = false;
  readonly #outcome = Promise.withResolvers<ServerLink>();

  constructor(
    readonly address: string,
    readonly atMs: number,
    readonly events: AttemptEvents,
  ) {}

  get promise(): Promise<ServerLink> {
    return this.#outcome.promise;
  }

  /** `s1/p2`: the second process with the id `s1`. */
  succeed(name: string, count = 1, carrier = "streams"): Promise<void> {
    const [serverId = "", instanceId = ""] = name.split("/");
    const server = { serverId, instanceId };
    const kind = carrier as "streams" | "packets";
    if (!this.events.claim(server, kind)) {
      return this.failWith(new Error("linked already"));
    }
    this.#outcome.resolve({
      ...server,
      serverCount: count,
      carrier: kind,
      drain: () => void (this.drained = true),
      close: (reason) => {
        this.closed = reason;
        this.events.closed(reason);
      },
    });
    return settled();
  }

  fail(reason: string): Promise<void> {
    return this.failWith(new Error(reason));
  }

  refuse(): Promise<void> {
    return this.failWith(refusal());
  }

  failWith(error: Error): Promise<void> {
    this.#outcome.reject(error);
    return settled();
  }

  lose(reason: string): Promise<void> {
    this.events.closed(reason);
    return settled();
  }

  drain(): Promise<void> {
    this.events.draining();
    return settled();
  }
}

/** Addresses whose attempts the test answers one by one. */
function setUp(
  options: Partial<
    {
      addresses: readonly string[];
      links: number;
      forever: boolean;
      intervalMs: number;
      wanted: (reported: number) => number;
    }
  > = {},
) {
  const timers = new FakeTimers();
  const attempts: Attempt[] = [];
  const said: string[] = [];
  const retries: number[] = [];
  const { addresses = ["a:1"], intervalMs } = options;
  const keeper = new LinkKeeper({
    timers,
    random: () => 0.5,
    linksPerServer: options.links ?? 1,
    ...(intervalMs === undefined ? {} : { intervalMs }),
    intervalCapMs: 10_000,
    forever: options.forever ?? false,
    serversWanted: options.wanted ?? ((reported) => reported),
    addresses: addresses.map((name) => ({
      name,
      connect: (events) => {
        const attempt = new Attempt(name, timers.now(), events);
        attempts.push(attempt);
        return attempt.promise;
      },
    })),
    observer: {
      linked: (link) => void said.push(`linked ${link.serverId}`),
      lost: (link, reason) =>
        void said.push(`lost ${link.serverId}: ${reason}`),
      failed: (reason, retryMs) => {
        said.push(`failed: ${reason}`);
        retries.push(retryMs);
      },
      counted: () => {},
      haveOneId: (id, at) => void said.push(`${id} at ${at.join(" and ")}`),
    },
  });
  keeper.start();
  return { timers, attempts, said, retries, keeper };
}

/**
 * Servers that answer by themselves, as the test lets them.
 *
 * @param world By address: who answers there, nobody, or one after the other.
 */
function setUpWorld(
  world: Map<string, string | readonly string[] | undefined>,
  options: { count?: number } = {},
) {
  const rig = setUp({ addresses: [...world.keys()] });
  const turns = new Map<string, number>();
  let answered = 0;
  const links = new Map<string, Attempt>();
  const answer = async (attempt: Attempt) => {
    const found = world.get(attempt.address);
    if (found === undefined) return await attempt.refuse();
    const turn = turns.get(attempt.address) ?? 0;
    turns.set(attempt.address, turn + 1);
    const name = typeof found === "string" ? found : found[turn % found.length];
    await attempt.succeed(name!, options.count ?? 1);
    links.set(attempt.address, attempt);
  };
  /** Time goes by, and whoever is asked answers. */
  const run = async (ms: number, stepMs = 50) => {
    for (let spent = 0; spent < ms; spent += stepMs) {
      while (answered < rig.attempts.length) {
        await answer(rig.attempts[answered++]!);
      }
      rig.timers.advance(stepMs);
    }
    while (answered < rig.attempts.length) {
      await answer(rig.attempts[answered++]!);
    }
  };
  const attemptsAt = (address: string, sinceMs = 0) =>
    rig.attempts.filter((one) => one.address === address && one.atMs >= sinceMs)
      .length;
  return { ...rig, run, links, attemptsAt };
}

Deno.test("one server is linked once, and then there is peace", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1");
  s.timers.advance(600_000);
  assertEquals([s.attempts.length, s.keeper.linkedServers], [1, 1]);
});

Deno.test("the first retry comes within 100 ms, later ones wait longer", async () => {
  const s = setUp();
  for (let round = 0; round < 20; round++) {
    await s.attempts.at(-1)!.fail("connection refused");
    s.timers.advance(10_000);
    await settled();
  }
  assert(s.retries[0]! <= 100);
  for (const [index, retry] of s.retries.entries()) {
    if (index > 0) assert(retry >= s.retries[index - 1]!);
  }
  const last = s.retries.at(-1)!;
  assert(last >= FAILED_CAP_MS / 2 && last <= FAILED_CAP_MS);
});

Deno.test("a server that is being started again is asked soon, and is no storm", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1");
  s.timers.advance(60_000);
  await s.attempts[0]!.lose("the server was killed");
  const refuseFor = async (ms: number) => {
    const before = s.attempts.length;
    for (let spent = 0; spent < ms; spent += 100) {
      s.timers.advance(100);
      await s.attempts.at(-1)!.refuse();
    }
    return s.attempts.length - before;
  };
  await refuseFor(9_900);
  assert(Math.max(...s.retries) <= 200, `${s.retries}`);
  const asked = await refuseFor(50_000);
  assert(asked > 100 && asked < 150, `${asked} attempts in 50 s`);
  assert(await refuseFor(500_000) < 510);
  assert(s.retries.at(-1)! <= 1_500, "it is still being started again");
  assert(await refuseFor(600_000) < 250, "it is no restart any more");
});

Deno.test("whoever answers and takes no link is asked ever more seldom", async () => {
  const s = setUp();
  for (let round = 0; round < 12; round++) {
    if (round % 4 === 0) await s.attempts.at(-1)!.refuse();
    else await s.attempts.at(-1)!.fail("cut off in the handshake");
    s.timers.advance(10_000);
    await settled();
  }
  assert(s.retries.at(-1)! > 1_500, `${s.retries}`);
});

Deno.test("a refusal is reported word for word", async () => {
  const s = setUp();
  await s.attempts[0]!.fail(
    "Cannot admit this agent: it showed no certificate",
  );
  assertEquals(s.said, [
    "failed: Cannot admit this agent: it showed no certificate",
  ]);
});

Deno.test("every server of several is found, duplicates are closed", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1", 3);
  s.timers.advance(100);
  await s.attempts[1]!.succeed("s1", 3);
  assertEquals(s.said, ["linked s1"], "nothing is said of a duplicate");
  s.timers.advance(10_000);
  await s.attempts[2]!.succeed("s2", 3);
  s.timers.advance(100);
  await s.attempts[3]!.succeed("s3", 3);
  s.timers.advance(600_000);
  assertEquals([s.attempts.length, s.keeper.linkedServers], [4, 3]);
});

Deno.test("a server that is said to exist and never answers is no storm", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1", 2);
  for (let second = 0; second < 600; second++) {
    s.timers.advance(1000);
    const last = s.attempts.at(-1)!;
    if (s.attempts.length > 1) await last.succeed("s1", 2);
  }
  // Upstream: 600. Waits grow to 5–10 s, which takes a dozen tries.
  assert(s.attempts.length < 120, `${s.attempts.length} attempts`);
});

Deno.test("a lost link is replaced at once", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1");
  await s.attempts[0]!.lose("the road broke");
  s.timers.advance(100);
  assertEquals(s.attempts.length, 2);
  assertEquals(s.said, ["linked s1", "lost s1: the road broke"]);
});

Deno.test("a link that is lost as soon as it is made is no success", async () => {
  const s = setUp();
  for (let round = 0; round < 20; round++) {
    const last = s.attempts.at(-1)!;
    await last.succeed("s1");
    await last.lose("thrown out");
    s.timers.advance(60_000);
  }
  const waits = s.attempts.map(({ atMs }) => atMs);
  assert(s.attempts.length <= 21, `${waits}`);
  const fresh = setUp();
  await fresh.attempts[0]!.succeed("s1");
  await fresh.attempts[0]!.lose("thrown out");
  for (let ms = 0; ms < 1000; ms += 10) {
    fresh.timers.advance(10);
    const last = fresh.attempts.at(-1)!;
    await last.succeed("s1");
    await last.lose("thrown out");
  }
  // Without growing waits: some thirteen of 75 ms each.
  assert(fresh.attempts.length < 8, `${fresh.attempts.length} in a second`);
});

Deno.test("a link that is lost before anybody looked is a failed attempt", async () => {
  const s = setUp();
  const first = s.attempts[0]!;
  const handing = first.succeed("s1");
  await Promise.all([handing, first.lose("gone at once")]);
  assertEquals(s.keeper.linkedServers, 0);
  s.timers.advance(100);
  assertEquals(s.attempts.length, 2);
});

Deno.test("several links per server are made at once, in the streams carrier only", async () => {
  const streams = setUp({ links: 3 });
  for (let index = 0; index < 3; index++) {
    await streams.attempts[index]!.succeed("s1");
    streams.timers.advance(0);
  }
  streams.timers.advance(600_000);
  assertEquals(streams.attempts.length, 3);
  const packets = setUp({ links: 3 });
  await packets.attempts[0]!.succeed("s1", 1, "packets");
  packets.timers.advance(600_000);
  assertEquals(packets.attempts.length, 1);
});

Deno.test("--sync-forever goes on looking, at the cap", async () => {
  const s = setUp({ forever: true });
  await s.attempts[0]!.succeed("s1");
  for (let second = 0; second < 100; second++) {
    s.timers.advance(1000);
    if (s.attempts.length > 1) await s.attempts.at(-1)!.succeed("s1");
  }
  assert(s.attempts.length > 10 && s.attempts.length < 30);
});

Deno.test("a draining agent tells every server and makes no new links", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1", 2);
  s.keeper.drain();
  assertEquals(s.attempts[0]!.drained, true);
  s.timers.advance(600_000);
  await s.attempts[0]!.lose("gone");
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
});

Deno.test("a link that comes while stopping is closed again", async () => {
  const s = setUp();
  s.keeper.stop("bye");
  await s.attempts[0]!.succeed("s1");
  assertEquals(s.attempts[0]!.closed, "the agent is stopping");
  assertEquals(s.timers.pendingCount, 0);
});

Deno.test("a link that comes while draining drains too, and is not lost", async () => {
  const s = setUp();
  s.keeper.drain();
  await s.attempts[0]!.succeed("s1");
  assertEquals([s.attempts[0]!.closed, s.attempts[0]!.drained], [
    undefined,
    true,
  ]);
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
  s.keeper.stop("bye");
  assertEquals(s.attempts[0]!.closed, "bye");
});

Deno.test("who counts servers elsewhere decides when all are found", async () => {
  let leases = 1;
  const s = setUp({ wanted: () => leases });
  await s.attempts[0]!.succeed("s1", 5);
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
  leases = 2;
  s.keeper.reconsider();
  s.timers.advance(100);
  assertEquals(s.attempts.length, 2);
  await s.attempts[1]!.succeed("s2", 5);
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 2);
});

Deno.test("news of more servers ends a long wait for the last one", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1", 2);
  for (let round = 0; round < 20; round++) {
    s.timers.advance(10_000);
    await s.attempts.at(-1)!.succeed("s1", 2);
  }
  const before = s.attempts.length;
  s.keeper.reconsider();
  s.timers.advance(100);
  assertEquals(s.attempts.length, before + 1);
});

Deno.test("news of more servers starts nothing while draining or stopped", async () => {
  for (const end of ["drain", "stop"] as const) {
    const s = setUp();
    await s.attempts[0]!.succeed("s1");
    s.keeper[end]("bye");
    s.keeper.reconsider();
    s.timers.advance(600_000);
    assertEquals(s.attempts.length, 1);
  }
});

Deno.test("each address is wanted by itself, whatever count is reported", async () => {
  for (const count of [1, 2]) {
    const world = new Map<string, string | undefined>([
      ["a:1", "s1/p1"],
      ["b:1", "s2/p1"],
    ]);
    const s = setUpWorld(world, { count });
    await s.run(1_000);
    assertEquals(s.keeper.linkedServers, 2);
    for (const awayMs of [3_000, 30_000, 120_000]) {
      await s.run(60_000);
      world.set("b:1", undefined);
      await s.links.get("b:1")!.lose("killed");
      await s.run(awayMs);
      world.set("b:1", "s2/p2");
      const sinceMs = s.timers.now();
      while (s.keeper.linkedServers < 2) await s.run(50);
      const tookMs = s.timers.now() - sinceMs;
      assert(tookMs <= 2_000, `count ${count}, ${awayMs}: ${tookMs} ms`);
      await s.run(2_000);
    }
  }
});

Deno.test("both come back when both were away", async () => {
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["b:1", "s2/p1"],
  ]);
  const s = setUpWorld(world, { count: 2 });
  await s.run(5_000);
  for (const address of world.keys()) world.set(address, undefined);
  for (const link of [...s.links.values()]) await link.lose("killed");
  await s.run(10_000);
  world.set("a:1", "s1/p2").set("b:1", "s2/p2");
  await s.run(1_000);
  assertEquals(s.keeper.linkedServers, 2);
});

Deno.test("an address that never existed costs the other nothing", async () => {
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["gone:1", undefined],
  ]);
  const s = setUpWorld(world);
  await s.run(1_200_000, 200);
  assertEquals(s.attemptsAt("a:1"), 1);
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assert(s.attemptsAt("gone:1", sinceMs) <= 24, "about every 4 s");
});

Deno.test("a server that is away leads to no storm on those that are linked", async () => {
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["b:1", "s2/p1"],
  ]);
  const s = setUpWorld(world, { count: 2 });
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
  const world = new Map<string, string | readonly string[] | undefined>([
    ["lb:1", ["s1", "s1", "s2", "s1", "s2", "s3"]],
    ["dead:1", undefined],
  ]);
  const s = setUpWorld(world, { count: 3 });
  await s.run(5_000);
  assertEquals(s.keeper.linkedServers, 3);
  const sinceMs = s.timers.now();
  await s.run(60_000);
  assertEquals(s.attemptsAt("lb:1", sinceMs), 0);
});

Deno.test("two addresses of one server: the second keeps no links, and takes over", async () => {
  const world = new Map<string, string | undefined>([
    ["name:1", "s1/p1"],
    ["10.0.0.1:1", "s1/p1"],
  ]);
  const s = setUpWorld(world);
  await s.run(60_000);
  assertEquals(s.said, ["linked s1"]);
  const looked = s.attemptsAt("10.0.0.1:1");
  assert(looked >= 2 && looked <= 5, `${looked} looks in a minute`);
  // The name leads nowhere now; the server is still there.
  world.set("name:1", undefined);
  await s.links.get("name:1")!.lose("the name is gone");
  await s.run(200);
  assertEquals(s.keeper.linkedServers, 1);
  await s.run(3_600_000, 1_000);
  world.set("name:1", "s1/p1");
  await s.run(10_000);
  const sinceMs = s.timers.now();
  await s.run(3_600_000, 1_000);
  const looks = s.attemptsAt("name:1", sinceMs);
  assert(looks <= 2 * 3_600_000 / LOOK_MS.cap, `${looks} looks in an hour`);
});

Deno.test("an alias that turns out to lead elsewhere is linked to, too", async () => {
  const world = new Map<string, string | readonly string[] | undefined>([
    ["a:1", "s1"],
    ["lb:1", ["s1", "s2"]],
  ]);
  const s = setUpWorld(world);
  await s.run(LOOK_MS.first);
  assertEquals(s.keeper.linkedServers, 2);
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
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["b:1", "s1/p2"],
  ]);
  const s = setUpWorld(world);
  await s.run(1_000);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  await s.run(10 * ONE_ID_MS);
  assertEquals(s.said.slice(2), ["s1 at a:1 and b:1"]);
});

Deno.test("a successor whose predecessor is not yet found dead is no second server", async () => {
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["b:1", "s1/p1"],
  ]);
  const s = setUpWorld(world);
  await s.run(1_000);
  world.set("a:1", "s1/p2").set("b:1", "s1/p2");
  await s.run(LOOK_MS.first);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  await s.links.get("a:1")!.lose("no answer to PING");
  await s.run(2 * ONE_ID_MS);
  assert(!s.said.some((line) => line.includes("and")), `${s.said}`);
});

Deno.test("the successor of a server that is going is found, and the old link serves on", async () => {
  const world = new Map<string, string | undefined>([["a:1", "s1/p1"]]);
  const s = setUpWorld(world);
  await s.run(60_000);
  const old = s.links.get("a:1")!;
  await old.drain();
  const sinceMs = s.timers.now();
  await s.run(20_000);
  const asked = s.attemptsAt("a:1", sinceMs);
  assert(asked > 15 && asked < 35, `${asked} attempts in 20 s`);
  assertEquals([s.keeper.linkedServers, s.said.length], [1, 1]);
  world.set("a:1", "s1/p2");
  await s.run(1_000);
  assertEquals(s.said, ["linked s1", "linked s1"]);
  assertEquals(old.closed, undefined);
  await old.lose("over");
  const after = s.attempts.length;
  await s.run(600_000, 1_000);
  assertEquals([s.keeper.linkedServers, s.attempts.length], [1, after]);
});

Deno.test("an alias of a server that is going is no storm either", async () => {
  const world = new Map<string, string | undefined>([
    ["a:1", "s1/p1"],
    ["b:1", "s1/p1"],
  ]);
  const s = setUpWorld(world);
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

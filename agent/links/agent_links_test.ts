import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { setUp } from "../../tests/support/rigs/link_attempts.ts";
import { FAILED_CAP_MS, SPREAD_MS_MAX } from "./retry_waits.ts";

Deno.test("the first retry comes within 100 ms, later ones wait longer", async () => {
  const s = setUp();
  for (let round = 0; round < 20; round++) {
    await s.attempts.at(-1)!.fail("connection refused");
    await s.timers.advance(10_000);
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
    await s.timers.advance(10_000);
  }
  assert(s.retries.at(-1)! > 1_500, `${s.retries}`);
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
  assertEquals([s.attempts.length, s.agentLinks.linkedServers], [4, 3]);
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
  await s.attempts[0]!.lose("the connection broke");
  s.timers.advance(100);
  assertEquals(s.attempts.length, 2);
  assertEquals(s.said, ["linked s1", "lost s1: the connection broke"]);
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

Deno.test("a link that is lost as soon as it is there is made anew", async () => {
  const s = setUp();
  const first = s.attempts[0]!;
  const handing = first.succeed("s1");
  await Promise.all([handing, first.lose("gone at once")]);
  assertEquals(s.agentLinks.linkedServers, 0);
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
  s.agentLinks.drain();
  assertEquals(s.attempts[0]!.drained, true);
  s.timers.advance(600_000);
  await s.attempts[0]!.lose("gone");
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
});

Deno.test("a link that comes while stopping is closed again", async () => {
  const s = setUp();
  s.agentLinks.stop("bye");
  await s.attempts[0]!.succeed("s1");
  assertEquals(s.attempts[0]!.closed, "the agent is stopping");
  assertEquals(s.timers.pendingCount, 0);
});

Deno.test("a link that comes while draining drains too, and is not lost", async () => {
  const s = setUp();
  s.agentLinks.drain();
  await s.attempts[0]!.succeed("s1");
  assertEquals([s.attempts[0]!.closed, s.attempts[0]!.drained], [
    undefined,
    true,
  ]);
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
  s.agentLinks.stop("bye");
  assertEquals(s.attempts[0]!.closed, "bye");
});

Deno.test("who counts servers elsewhere decides when all are found", async () => {
  let leases = 1;
  const s = setUp({ wanted: () => leases });
  await s.attempts[0]!.succeed("s1", 5);
  s.timers.advance(600_000);
  assertEquals(s.attempts.length, 1);
  leases = 2;
  s.agentLinks.reconsider();
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
  s.agentLinks.reconsider();
  s.timers.advance(100);
  assertEquals(s.attempts.length, before + 1);
});

Deno.test("news of more servers starts nothing while draining or stopped", async () => {
  for (const end of ["drain", "stop"] as const) {
    const s = setUp();
    await s.attempts[0]!.succeed("s1");
    s.agentLinks[end]("bye");
    s.agentLinks.reconsider();
    s.timers.advance(600_000);
    assertEquals(s.attempts.length, 1);
  }
});

Deno.test("beside a link whose server owes a sign of life another one is made, and it stays", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.doubt(true);
  await s.timers.advance(0);
  assertEquals(s.attempts.length, 2);
  await s.attempts[1]!.succeed("s1/p1");
  assertEquals(s.said, ["linked s1", "linked s1"]);
  assertEquals(s.attempts[0]!.closed, undefined);
  s.timers.advance(60_000);
  assertEquals(s.attempts.length, 2, "there is peace");
  await s.attempts[0]!.lose("no answer to PING");
  s.timers.advance(60_000);
  assertEquals(s.attempts.length, 2, "and the one that was made is enough");
});

Deno.test("doubts that come and go make no crowd of links", async () => {
  const s = setUp({ links: 2 });
  for (let round = 0; round < 20; round++) {
    for (const attempt of [...s.attempts]) await attempt.doubt(true);
    await s.timers.advance(1_000);
    const last = s.attempts.at(-1)!;
    await last.succeed("s1/p1");
    for (const attempt of s.attempts) await attempt.doubt(false);
    await s.timers.advance(1_000);
  }
  const stand = s.said.filter((line) => line === "linked s1").length;
  assert(stand <= 4, `${stand} links`);
});

Deno.test("when the network is another one, links are asked and waits are over", async () => {
  const s = setUp({ addresses: ["a:1", "b:1"] });
  const [first, second] = s.attempts;
  await first!.succeed("s1/p1");
  for (let round = 0; round < 15; round++) {
    await s.attempts.at(-1)!.fail("network is unreachable");
    await s.timers.advance(10_000);
  }
  await s.attempts.at(-1)!.fail("network is unreachable");
  assert(s.retries.at(-1)! > 2_000);
  const before = s.attempts.length;
  s.agentLinks.recheck();
  assertEquals([first!.checked, second!.checked], [1, 0]);
  await s.timers.advance(100);
  assertEquals(s.attempts.length, before + 1);
  // It fails again: waits are short, as after a success.
  await s.attempts.at(-1)!.fail("network is unreachable");
  assert(s.retries.at(-1)! <= 150, `${s.retries.at(-1)}`);
});

Deno.test("an attempt of the network that there was is begun anew, a fresh one is not", async () => {
  const s = setUp();
  s.timers.advance(100);
  s.agentLinks.recheck();
  await settled();
  s.timers.advance(100);
  assertEquals(s.attempts.length, 1);
  s.agentLinks.recheck();
  await settled();
  await s.timers.advance(100);
  assertEquals(s.attempts.length, 2);
  assertEquals(s.said, [], "nothing went wrong");
  await s.attempts[1]!.succeed("s1");
  assertEquals(s.agentLinks.linkedServers, 1);
});

// The rig draws 0.5 of whatever is drawn.

Deno.test("a server that spreads its agents is left one by one", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.drain(10_000);
  s.timers.advance(4_900);
  assertEquals(s.attempts.length, 1);
  s.timers.advance(200);
  assertEquals(s.attempts.length, 2);
  await s.attempts[1]!.succeed("s1/p2");
  // It was for that time, and not for the next one.
  await s.attempts[1]!.drain();
  s.timers.advance(200);
  assertEquals(s.attempts.length, 3);
});

Deno.test("no server keeps its agents from others for long", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.drain(4_294_967_295);
  s.timers.advance(SPREAD_MS_MAX);
  assertEquals(s.attempts.length, 2);
});

Deno.test("a server that is gone before is looked for at once, if it was the only one", async () => {
  const alone = setUp();
  await alone.attempts[0]!.succeed("s1/p1");
  await alone.attempts[0]!.drain(10_000);
  await alone.attempts[0]!.lose("it has ended");
  await alone.timers.advance(100);
  assertEquals(alone.attempts.length, 2);
  const beside = setUp({ addresses: ["a:1", "b:1"] });
  await beside.attempts[0]!.succeed("s1/p1", 2);
  await beside.attempts[1]!.succeed("s2/p1", 2);
  await beside.attempts[0]!.drain(10_000);
  await beside.attempts[0]!.lose("it has ended");
  const there = () =>
    beside.attempts.filter(({ address }) => address === "a:1").length;
  beside.timers.advance(4_000);
  assertEquals(there(), 1);
  beside.timers.advance(1_500);
  assertEquals(there(), 2);
});

import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { ConnectError } from "../../host/dial/agent_connect.ts";
import { LinkKeeper, RESTART_WAIT_MS, type ServerLink } from "./link_keeper.ts";

/** What a machine says on which no server runs. */
function refusal(): ConnectError {
  const cause = Object.assign(new Error(), { code: "ECONNREFUSED" });
  return new ConnectError("connection refused", { cause });
}

/** Servers behind one address: each attempt is answered by the next of `script`. */
function setUp(
  options: Partial<
    { links: number; forever: boolean; wanted: (reported: number) => number }
  > = {},
) {
  const timers = new FakeTimers();
  const attempts: {
    atMs: number;
    succeed(serverId: string, count?: number, carrier?: string): Promise<void>;
    fail(reason: string): Promise<void>;
    refuse(): Promise<void>;
    lose(reason: string): Promise<void>;
    closed: string | undefined;
    drained: boolean;
  }[] = [];
  const said: string[] = [];
  const retries: number[] = [];
  const keeper = new LinkKeeper({
    timers,
    random: () => 0.5,
    linksPerServer: options.links ?? 1,
    intervalCapMs: 10_000,
    forever: options.forever ?? false,
    serversWanted: options.wanted ?? ((reported) => reported),
    connect: (onClosed) =>
      new Promise<ServerLink>((resolve, reject) => {
        const attempt = {
          atMs: timers.now(),
          closed: undefined as string | undefined,
          drained: false,
          succeed: (serverId: string, count = 1, carrier = "streams") => {
            resolve({
              serverId,
              serverCount: count,
              carrier: carrier as "streams" | "packets",
              drain: () => void (attempt.drained = true),
              close: (reason) => {
                attempt.closed = reason;
                onClosed(reason);
              },
            });
            return settled();
          },
          fail: (reason: string) => attempt.failWith(new Error(reason)),
          failWith: (error: Error) => {
            reject(error);
            return settled();
          },
          refuse: () => attempt.failWith(refusal()),
          lose: (reason: string) => {
            onClosed(reason);
            return settled();
          },
        };
        attempts.push(attempt);
      }),
    observer: {
      linked: (link) => void said.push(`linked ${link.serverId}`),
      lost: (link, reason) =>
        void said.push(`lost ${link.serverId}: ${reason}`),
      failed: (reason, retryMs) => {
        said.push(`failed: ${reason}`);
        retries.push(retryMs);
      },
      counted: () => {},
    },
  });
  keeper.start();
  return { timers, attempts, said, retries, keeper };
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
  assert(s.retries.at(-1)! >= 5000 && s.retries.at(-1)! <= 10_000);
});

Deno.test("a server that is being started again is asked soon, and is no storm", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1");
  s.timers.advance(60_000);
  await s.attempts[0]!.lose("the server was killed");
  s.timers.advance(100);
  for (let tick = 0; tick < 290; tick++) {
    await s.attempts.at(-1)!.refuse();
    s.timers.advance(100);
  }
  assert(Math.max(...s.retries) <= RESTART_WAIT_MS);
  // About one a second, as upstream for ever.
  assert(s.attempts.length < 35, `${s.attempts.length} attempts`);
  const before = s.attempts.length;
  for (let second = 0; second < 600; second++) {
    await s.attempts.at(-1)!.refuse();
    s.timers.advance(1_000);
  }
  assert(s.retries.at(-1)! >= 5_000, "it is no restart any more");
  assert(s.attempts.length - before < 120, `${s.attempts.length} attempts`);
});

Deno.test("whoever answers and takes no link is asked ever more seldom", async () => {
  const s = setUp();
  for (let round = 0; round < 12; round++) {
    if (round % 4 === 0) await s.attempts.at(-1)!.refuse();
    else await s.attempts.at(-1)!.fail("cut off in the handshake");
    s.timers.advance(10_000);
    await settled();
  }
  assert(s.retries.at(-1)! > RESTART_WAIT_MS, `${s.retries}`);
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
  assertEquals(s.attempts[1]!.closed, "this server is linked already");
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

import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { FrameWriter } from "./frame_writer.ts";
import { Output } from "../bytes/output.ts";
import {
  Liveness,
  MINIMUM_LIFE_MS,
  NEAR_MS,
  PathRtt,
  PingTracker,
} from "./liveness.ts";
import { linkKeepalive } from "../link/link_limits.ts";
import { Keepalive, type KeepaliveOptions } from "./keepalive.ts";

Deno.test("answers in any order are told apart and timed", () => {
  const pings = new PingTracker();
  const probe = pings.begin("probe", 100).slice();
  const drain = pings.begin("drain", 150).slice();
  assert(pings.isUnderWay("probe"));
  assertEquals(pings.answer(drain, 175), { purpose: "drain", rttMs: 25 });
  assertEquals(pings.answer(probe, 180), { purpose: "probe", rttMs: 80 });
  assert(!pings.isUnderWay("probe"));
});

Deno.test("an answer counts once, and made-up ones never", () => {
  const pings = new PingTracker();
  const probe = pings.begin("probe", 0).slice();
  for (let index = 0; index < probe.length; index++) {
    const forged = probe.slice();
    forged[index]! ^= 1;
    assertEquals(pings.answer(forged, 1), undefined);
  }
  assertEquals(pings.answer(new Uint8Array(8), 1), undefined);
  assertEquals(pings.answer(probe, 1)?.purpose, "probe");
  assertEquals(pings.answer(probe, 2), undefined);
});

Deno.test("only the newest PING of a purpose is waited for", () => {
  const pings = new PingTracker();
  const first = pings.begin("keepalive", 0).slice();
  const second = pings.begin("keepalive", 10).slice();
  assertEquals(pings.answer(first, 20), undefined);
  assertEquals(pings.answer(second, 20)?.rttMs, 10);
});

/** A peer that answers PING when a test says so. */
class Peer {
  readonly timers = new FakeTimers();
  readonly #writer = new FrameWriter(new Output(), () => {});
  readonly asked: Uint8Array[] = [];
  /** Before which PING. */
  readonly padded: number[] = [];
  readonly liveness: Liveness;
  alive = 0;

  constructor() {
    this.#writer.ping = (_ack, opaque) => void this.asked.push(opaque.slice());
    this.#writer.padding = () => void this.padded.push(this.asked.length);
    this.liveness = new Liveness(this.#writer, this.timers, undefined);
    this.timers.advance(1_000);
  }

  ask(): void {
    this.liveness.whenAlive(() => this.alive++);
  }

  answer(afterMs: number): void {
    this.timers.advance(afterMs);
    this.liveness.onPingAck(this.asked.at(-1)!, this.timers.now());
    this.liveness.proven();
  }
}

Deno.test("a peer that is far lives for a round trip after an answer, and is asked again meanwhile", () => {
  const peer = new Peer();
  const { timers, liveness } = peer;
  const startMs = timers.now();
  peer.ask();
  assertEquals([peer.alive, liveness.askedMs], [0, startMs]);
  // Its own bytes do not show that it hears us.
  liveness.lastHeardMs = timers.now() + 1;
  assertEquals([liveness.isProven, liveness.askedMs], [false, startMs]);
  peer.answer(50);
  const { isProven, askedMs } = liveness;
  assertEquals([peer.alive, isProven, askedMs], [1, true, undefined]);
  timers.advance(49);
  peer.ask();
  peer.ask();
  assertEquals([peer.alive, peer.asked.length], [3, 2]);
  timers.advance(1);
  peer.ask();
  assertEquals([peer.alive, liveness.isProven], [3, false]);
  peer.answer(1);
  assertEquals([peer.alive, peer.asked.length], [4, 2]);
});

Deno.test("a peer that is near is asked each time", () => {
  const peer = new Peer();
  for (const count of [1, 2, 3]) {
    peer.ask();
    assertEquals(peer.alive, count - 1);
    peer.answer(NEAR_MS - 1);
    assertEquals([peer.alive, peer.liveness.isProven], [count, false]);
  }
});

Deno.test("a full packet goes in front of a question, but not of each one", () => {
  const peer = new Peer();
  for (let count = 1; count <= 5; count++) {
    peer.ask();
    peer.answer(NEAR_MS - 1);
  }
  assertEquals([peer.padded, peer.asked.length], [[0, 2, 4], 5]);
  peer.liveness.askForLife();
  assertEquals(peer.padded.length, 3, "a sign of life alone costs no packet");
});

Deno.test("one late answer is a lost packet, three are a queue", () => {
  const rtt = new PathRtt();
  rtt.sample(50, 0);
  for (const [ms, isInflated] of [[200, false], [200, false], [200, true]]) {
    rtt.sample(Number(ms), 0);
    assertEquals(rtt.isInflated, isInflated);
  }
  rtt.sample(50, 0);
  assertEquals(rtt.isInflated, false);
});

Deno.test("what takes three milliseconds on loopback is no queue", () => {
  const rtt = new PathRtt();
  rtt.sample(0.1, 0);
  for (let i = 0; i < 5; i++) rtt.sample(9, i);
  assertEquals(rtt.isInflated, false);
});

Deno.test("the minimum is doubted when nothing came near it for long", () => {
  const rtt = new PathRtt();
  rtt.sample(50, 0);
  rtt.sample(100, MINIMUM_LIFE_MS);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS), false);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS + 1), true);
  rtt.sample(52, MINIMUM_LIFE_MS + 1);
  assertEquals(rtt.isMinimumOld(MINIMUM_LIFE_MS + 1), false);
  assertEquals(rtt.minMs, 50);
  rtt.forgetMinimum();
  rtt.sample(80, MINIMUM_LIFE_MS + 2);
  assertEquals(rtt.minMs, 80);
});

/** When a silent peer is given up, on a path of such round trips. */
function lostAfterMs(options: KeepaliveOptions, rttMs: number): number {
  const keepalive = new Keepalive(options);
  for (let nowMs = 0;;) {
    nowMs = keepalive.nextDeadlineMs(0, rttMs);
    if (keepalive.due(0, rttMs, nowMs) === "lost") return nowMs;
  }
}

const CASES: readonly [flagMs: number, rttMs: number, lostMs: number][] = [
  [4_000, 0, 9_600],
  [4_000, 1, 9_600],
  [4_000, 5_000, 9_600],
  [1_000, 1, 2_400],
  [1_000, 500, 3_000],
  [1_000, 9_000, 6_600],
  [100, 1, 1_100],
  [3_600_000, 1, 3_605_600],
];

for (const [flagMs, rttMs, lostMs] of CASES) {
  Deno.test(`--keepalive-time ${flagMs} ms, round trips of ${rttMs} ms: lost after ${lostMs} ms`, () => {
    assertEquals(lostAfterMs(linkKeepalive(flagMs), rttMs), lostMs);
  });
}

Deno.test("a path that is silent for long is refreshed, and nobody waits for that", () => {
  const keepalive = new Keepalive(linkKeepalive(3_600_000));
  assertEquals(keepalive.nextDeadlineMs(0, 1), 60_000);
  assertEquals(keepalive.due(0, 1, 60_000), "refresh");
  assertEquals(keepalive.due(0, 1, 60_001), "nothing");
  assertEquals(keepalive.due(0, 1, 100_000), "nothing");
  assertEquals(keepalive.due(0, 1, 120_000), "refresh");
  // The answer came.
  assertEquals(keepalive.nextDeadlineMs(120_010, 1), 180_010);
});

Deno.test("bytes put the end off, and only an answer takes back what was asked", () => {
  const keepalive = new Keepalive({ intervalMs: 1_000, timeoutMs: 300 });
  assertEquals(keepalive.due(0, 0, 1_000), "ping");
  assertEquals(keepalive.due(1_200, 0, 1_300), "nothing");
  assertEquals(keepalive.nextDeadlineMs(1_200, 0), 1_500);
  assertEquals(keepalive.nextDeadlineMs(1_450, 0), 1_750);
  keepalive.answered(1_460);
  assertEquals(keepalive.nextDeadlineMs(1_460, 0), 2_460);
});

Deno.test("a late answer is reported once for each PING, before the end", () => {
  const keepalive = new Keepalive(linkKeepalive(4_000));
  assertEquals(keepalive.due(0, 1, 4_000), "ping");
  assertEquals(keepalive.due(0, 1, 4_500), "doubt");
  assertEquals(keepalive.due(0, 1, 5_000), "nothing");
  keepalive.answered(5_100);
  assertEquals(keepalive.due(5_100, 1, 9_100), "ping");
  assertEquals(keepalive.due(5_100, 1, 9_600), "doubt");
  assertEquals(keepalive.due(5_100, 1, 14_700), "lost");
});

Deno.test("a link that is cut one way is found in time by the end that still hears", () => {
  const keepalive = new Keepalive(linkKeepalive(4_000));
  // The last answer came just before the cut, at 0; the peer's own PING at 3,999.
  keepalive.answered(0);
  assertEquals(keepalive.asksBack(3_999), true);
  keepalive.asked(3_999);
  assertEquals(keepalive.asksBack(4_000), false, "it is asked already");
  assertEquals(keepalive.due(3_999, 1, 4_499), "doubt");
  assertEquals(keepalive.nextDeadlineMs(3_999, 1), 9_599);
});

Deno.test("two ends do not ask each other for ever", () => {
  const ends = [linkKeepalive(4_000), linkKeepalive(4_000)]
    .map((options) => new Keepalive(options));
  const [one, other] = ends as [Keepalive, Keepalive];
  assertEquals(one.due(0, 1, 4_000), "ping");
  assertEquals(other.asksBack(4_001), true);
  other.asked(4_001);
  // Its answer comes in front of its question.
  one.answered(4_002);
  assertEquals(one.asksBack(4_002), false);
  other.answered(4_003);
});

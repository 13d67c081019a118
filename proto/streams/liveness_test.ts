import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { FrameWriter } from "./frame_writer.ts";
import { Output } from "../bytes/output.ts";
import { Liveness, NEAR_MS, PingTracker } from "./liveness.ts";

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
  readonly liveness: Liveness;
  alive = 0;

  constructor() {
    this.#writer.ping = (_ack, opaque) => void this.asked.push(opaque.slice());
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

import { assert, assertEquals } from "@std/assert";
import { PingTracker } from "./liveness.ts";

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

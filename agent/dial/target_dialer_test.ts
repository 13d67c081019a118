import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { assertEquals } from "@std/assert";
import {
  LiveConduits,
  type LiveDial,
} from "../../platform/conduits/live_conduits.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { TargetDialer } from "./target_dialer.ts";

const TARGET: DialTarget = { protocol: "tcp", address: "127.0.0.1:80" };

function setUp() {
  const connecting = Promise.withResolvers<Conduit>();
  const counts = { failed: [] as string[], bytes: 0, ended: [] as string[] };
  const loads: number[] = [];
  const timers = new FakeTimers();
  const conduits = new LiveConduits(timers);
  let signal: AbortSignal | undefined;
  const dialer = new TargetDialer({
    clock: timers,
    reports: new DialReports({ conduits }),
    connect: (_target, given) => {
      signal = given.signal;
      return connecting.promise;
    },
    observer: {
      failed: (reason) => counts.failed.push(reason),
      connected: () => {},
      received: (bytes) => counts.bytes += bytes,
      sent: (bytes) => counts.bytes += bytes,
      ended: ({ kind }) => counts.ended.push(kind),
    },
    loadChanged: () => loads.push(dialer.load),
  });
  const outcome: { conduit?: Conduit; error?: DialError } = {};
  const pending = dialer.dial(TARGET, {
    connected: (conduit) => void (outcome.conduit = conduit),
    failed: (error) => void (outcome.error = error),
  });
  return {
    ...{ connecting, counts, loads, outcome, pending, conduits },
    signal: () => signal!,
  };
}

Deno.test("a dialed target is counted until its conduit is over", async () => {
  const s = setUp();
  const [target, near] = MemoryConduit.pair();
  const far = new ConduitProbe(target);
  s.connecting.resolve(near);
  await settled();
  const probe = new ConduitProbe(s.outcome.conduit!);
  s.outcome.conduit!.write(new Uint8Array(5));
  await settled();
  assertEquals([s.counts.bytes, s.loads], [5, [1]]);
  target.reset("gone");
  await settled();
  assertEquals([s.counts.ended, s.loads], [["reset"], [1, 0]]);
  void [far, probe];
});

Deno.test("a failed dial is answered with its words and not counted as load", async () => {
  const s = setUp();
  s.connecting.reject(new DialError("timeout", "i/o timeout"));
  await settled();
  assertEquals(s.outcome.error?.message, "i/o timeout");
  assertEquals([s.counts.failed, s.loads], [["timeout"], [1, 0]]);
});

Deno.test("a cancelled dial is aborted, and a late success reset", async () => {
  const s = setUp();
  s.pending.cancel();
  assertEquals(s.signal().aborted, true);
  const [target, near] = MemoryConduit.pair();
  const far = new ConduitProbe(target);
  s.connecting.resolve(near);
  await settled();
  assertEquals([s.outcome, s.loads], [{}, [1, 0]]);
  assertEquals(target.closed?.kind, "reset");
  void far;
});

Deno.test("a cancelled dial that fails is not answered", async () => {
  const s = setUp();
  s.pending.cancel();
  s.connecting.reject(new DialError("cancelled", "given up"));
  await settled();
  assertEquals([s.outcome, s.counts.failed, s.loads], [{}, [], [1, 0]]);
});

Deno.test("a dial under way is listed, and can be ended", async () => {
  const s = setUp();
  const [{ id, facts }] = [...s.conduits.dials] as [LiveDial];
  assertEquals(facts.target, TARGET);
  assertEquals(s.conduits.kill(id, "ended by root"), true);
  const { reason } = s.signal() as { reason: DialError };
  assertEquals(reason.message, "ended by root");
  s.connecting.reject(reason);
  await settled();
  assertEquals(s.outcome.error?.message, "ended by root");
  assertEquals(s.outcome.error?.tunnelCode, "TUN509");
  assertEquals(s.conduits.dials.size, 0);
  assertEquals(s.conduits.totals().failedDials, 1);
});

Deno.test("an open connection is listed until it is over, and ending it is a reset", async () => {
  const s = setUp();
  const [target, near] = MemoryConduit.pair();
  const far = new ConduitProbe(target);
  s.connecting.resolve(near);
  await settled();
  const probe = new ConduitProbe(s.outcome.conduit!);
  assertEquals([s.conduits.size, s.conduits.dials.size], [1, 0]);
  const [live] = [...s.conduits.all()];
  assertEquals(s.conduits.kill(live!.id, "ended by root"), true);
  await settled();
  assertEquals(far.end?.kind, "reset");
  assertEquals([s.conduits.size, s.loads], [0, [1, 0]]);
  s.conduits.stop();
  void probe;
});

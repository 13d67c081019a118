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
  /** What those heard that want to hear of dials. */
  const told: string[] = [];
  const timers = new FakeTimers();
  const conduits = new LiveConduits(timers);
  let signal: AbortSignal | undefined;
  const dialer = new TargetDialer({
    clock: timers,
    reports: new DialReports(conduits, {
      began: () => told.push("began"),
      over: () => told.push("over"),
      failed: ({ message }) => told.push(message),
      connected: () => ({
        received: () => {},
        sent: (bytes) => told.push(`sent ${bytes}`),
        ended: ({ kind }) => told.push(kind),
      }),
    }),
    connect: (_target, given) => {
      signal = given.signal;
      return connecting.promise;
    },
  });
  const outcome: { conduit?: Conduit; error?: DialError } = {};
  const pending = dialer.dial(TARGET, {
    connected: (conduit) => void (outcome.conduit = conduit),
    failed: (error) => void (outcome.error = error),
  });
  /** The target answers. @returns Its side. */
  const connect = async () => {
    const [target, near] = MemoryConduit.pair();
    const far = new ConduitProbe(target);
    connecting.resolve(near);
    await settled();
    return far;
  };
  const fail = async (error: DialError) => {
    connecting.reject(error);
    await settled();
  };
  return {
    ...{ told, outcome, pending, conduits, connect, fail },
    signal: () => signal!,
  };
}

Deno.test("a dialed target is told of until its conduit is over, which may be ended", async () => {
  const s = setUp();
  const far = await s.connect();
  new ConduitProbe(s.outcome.conduit!);
  s.outcome.conduit!.write(new Uint8Array(5));
  assertEquals([s.conduits.size, s.conduits.dials.size], [1, 0]);
  const [live] = [...s.conduits.all()];
  assertEquals(s.conduits.kill(live!.id, "ended by root"), true);
  await settled();
  assertEquals(far.end?.kind, "reset");
  assertEquals(s.told, ["began", "over", "sent 5", "reset"]);
  assertEquals(s.conduits.size, 0);
  s.conduits.stop();
});

Deno.test("a failed dial is answered with its words", async () => {
  const s = setUp();
  await s.fail(new DialError("timeout", "i/o timeout"));
  assertEquals(s.outcome.error?.message, "i/o timeout");
  assertEquals(s.told, ["began", "over", "i/o timeout"]);
});

Deno.test("a cancelled dial is aborted and not answered, and a late success is reset", async () => {
  for (const isLate of [true, false]) {
    const s = setUp();
    s.pending.cancel();
    assertEquals(s.signal().aborted, true);
    if (isLate) assertEquals((await s.connect()).end?.kind, "reset");
    else await s.fail(new DialError("cancelled", "given up"));
    assertEquals(s.outcome, {});
    assertEquals(s.told, ["began", "the caller gave up", "over"]);
  }
});

Deno.test("a dial under way is listed, and can be ended", async () => {
  const s = setUp();
  const [{ id, facts }] = [...s.conduits.dials] as [LiveDial];
  assertEquals(facts.target, TARGET);
  assertEquals(s.conduits.kill(id, "ended by root"), true);
  const { reason } = s.signal() as { reason: DialError };
  assertEquals(reason.message, "ended by root");
  await s.fail(reason);
  assertEquals(s.outcome.error?.message, "ended by root");
  assertEquals(s.outcome.error?.tunnelCode, "TUN509");
  assertEquals(s.conduits.dials.size, 0);
  assertEquals(s.conduits.totals().failedDials, 1);
});

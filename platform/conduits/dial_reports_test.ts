import { assertEquals } from "@std/assert";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import { ConnectionLog } from "../log/connection_log.ts";
import { type DialProblem, DialReports } from "./dial_reports.ts";
import { LiveConduits } from "./live_conduits.ts";

/** A dial with an audit and a span of its own, and what all were told. */
function told() {
  const timers = new FakeTimers();
  const log = new RecordedLog();
  const conduits = new LiveConduits(timers);
  const events: string[] = [];
  const say = (line: string) => void events.push(line);
  const observing = (who: string, inner?: ConduitObserver) => ({
    received: (bytes: number) => inner?.received(bytes),
    sent(bytes: number) {
      say(`${who}: sent ${bytes}`);
      inner?.sent(bytes);
    },
    ended(end: ConduitEnd) {
      say(`${who}: ${end.kind}`);
      inner?.ended(end);
    },
  });
  const reports = new DialReports(conduits, {
    began: () => say("began"),
    over: () => say("over"),
    failed: ({ message }, _dial, facts, cause) =>
      say(`${facts.service} failed: ${message}, ${cause}`),
    connected: (_dial, inner) => observing("metrics", inner),
  }, new ConnectionLog(log, timers));
  const id = "00000001000000a1";
  const dial = {
    ...{ id, facts: { id, service: "default/echo:80" }, kill() {} },
    ...{ askedMs: timers.now(), earlyBytes: 4 },
    record: {
      failed: ({ message }: DialProblem, bytes = 0) =>
        say(`audit: ${message}, ${bytes} bytes`),
      observing: (inner: ConduitObserver) => observing("audit", inner),
    },
    span: {
      ...{ context: { traceId: "1", spanId: "2", flags: 1 }, set() {} },
      end: (problem = "well") => say(`span: ${problem}`),
    },
  };
  return { reports, dial, conduits, log, events };
}

Deno.test("all who want it hear of a dial that failed, and of one that was given up", () => {
  for (const reason of ["endpoint", "cancelled"] as const) {
    const { reports, dial, conduits, log, events } = told();
    reports.began(dial);
    assertEquals(reports.has(dial.id), true);
    reports.over(dial);
    reports.failed(new DialError(reason, "no"), dial, "answered");
    assertEquals([reports.has(dial.id), conduits.dials.size], [false, 0]);
    assertEquals(events, [
      ...["began", "over", "span: no", "audit: no, 4 bytes"],
      "default/echo:80 failed: no, answered",
    ]);
    const isFailure = reason === "endpoint";
    assertEquals(conduits.totals().failedDials, isFailure ? 1 : 0);
    assertEquals(log.lines.length, 1);
  }
});

Deno.test("a connection is listed, counted and audited until it ends", () => {
  const { reports, dial, conduits, events } = told();
  const [far] = MemoryConduit.pair();
  const conduit = reports.connected(far, dial, dial.askedMs);
  conduit.attach({ onData() {}, onWritable() {}, onEnd() {}, onClose() {} });
  conduit.write(new Uint8Array(3));
  assertEquals([...conduits.all()].map(({ id }) => id), [dial.id]);
  conduit.reset("enough");
  assertEquals(conduits.size, 0);
  assertEquals(events, [
    "span: well",
    ...["audit: sent 4", "metrics: sent 4", "audit: sent 3", "metrics: sent 3"],
    ...["audit: reset", "metrics: reset"],
  ]);
});

Deno.test("where no one wants to hear, nothing is told", () => {
  const { dial } = told();
  const reports = new DialReports();
  reports.began(dial);
  reports.failed(new DialError("endpoint", "refused"), dial);
  assertEquals(reports.has(dial.id), false);
});

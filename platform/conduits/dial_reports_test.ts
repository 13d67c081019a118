import { assertEquals } from "@std/assert";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { ConnectionLog } from "../log/connection_log.ts";
import { DialReports } from "./dial_reports.ts";
import { LiveConduits } from "./live_conduits.ts";

/** A dial, and what everybody was told. */
function told() {
  const timers = new FakeTimers();
  const log = new RecordedLog();
  const conduits = new LiveConduits(timers);
  const failures: string[] = [];
  const audited: string[] = [];
  const reports = new DialReports({
    conduits,
    log: new ConnectionLog(log, timers),
    failed: ({ message }) => void failures.push(message),
  });
  const facts = { id: "00000001000000a1", service: "default/echo:80" };
  const dial = { id: facts.id, facts, askedMs: timers.now(), kill() {} };
  const audit = {
    failed: ({ message }: { message: string }) => void audited.push(message),
    observing: () => ({
      received: (bytes: number) => void audited.push(`received ${bytes}`),
      sent: (bytes: number) => void audited.push(`sent ${bytes}`),
      ended: () => void audited.push("ended"),
    }),
  };
  return { reports, dial, audit, conduits, log, failures, audited };
}

Deno.test("all who want it hear of a dial that failed, once", () => {
  const { reports, dial, audit, conduits, log, failures, audited } = told();
  reports.began(dial);
  assertEquals(reports.has(dial.id), true);
  reports.over(dial);
  reports.over(dial);
  reports.failed(new DialError("endpoint", "refused"), dial, audit);
  assertEquals([reports.has(dial.id), conduits.dials.size], [false, 0]);
  assertEquals([failures, audited], [["refused"], ["refused"]]);
  assertEquals(conduits.totals().failedDials, 1);
  assertEquals(log.lines.length, 1);
});

Deno.test("a caller that gave up is written down, and no failure", () => {
  const { reports, dial, audit, conduits, failures, audited } = told();
  reports.failed(new DialError("cancelled", "gone"), dial, audit);
  assertEquals([failures, audited], [[], ["gone"]]);
  assertEquals(conduits.totals().failedDials, 0);
});

Deno.test("a connection is listed, counted and audited until it ends", () => {
  const { reports, dial, audit, conduits, audited } = told();
  const [far] = MemoryConduit.pair();
  const conduit = reports.connected(far, dial, { audit });
  conduit.attach({ onData() {}, onWritable() {}, onEnd() {}, onClose() {} });
  conduit.write(new Uint8Array(3));
  assertEquals([...conduits.all()].map(({ id }) => id), [dial.id]);
  conduit.reset("enough");
  assertEquals(conduits.size, 0);
  assertEquals(audited, ["sent 3", "ended"]);
});

Deno.test("where nobody wants to hear, nothing is told", () => {
  const { dial } = told();
  const reports = new DialReports();
  reports.began(dial);
  reports.failed(new DialError("endpoint", "refused"), dial);
  assertEquals(reports.has(dial.id), false);
});

import { assertEquals } from "@std/assert";
import { DialReports } from "../platform/conduits/dial_reports.ts";
import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import { MemoryConduit } from "../tests/support/memory/memory_conduit.ts";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { forAll, type Prng } from "../tests/support/memory/prng.ts";
import { RecordedLog } from "../tests/support/watch/recorded_log.ts";
import { AuditLog } from "./audit_log.ts";
import { AuditTrail, catalogDials } from "./audit_trail.ts";
import type { DialFacts } from "./dial_record.ts";

/** What peers call themselves: plain words, and everything else. */
function words(prng: Prng): string {
  const letters = prng.pick([
    "abc-09.:/_",
    ' "\\{}[],',
    "\u0000\n\r\t\u007f\u2028",
    "é✓\ud800𝄞",
  ]);
  const length = prng.below(12);
  return Array.from({ length }, () => prng.pick([...letters])).join("");
}

function facts(prng: Prng): DialFacts & { readonly target: DialTarget } {
  const target = { protocol: words(prng), address: words(prng) };
  return {
    target,
    ...(prng.below(2) === 0 ? {} : { node: words(prng) }),
    ...(prng.below(2) === 0 ? {} : { from: words(prng) }),
    ...prng.pick([
      {},
      { who: { socket: words(prng) } },
      { who: { commonName: words(prng), fingerprint: words(prng) } },
      { who: {} },
    ]),
  };
}

/** The lines that `act` leaves behind. */
async function linesOf(
  act: (trail: AuditTrail) => void,
): Promise<Record<string, unknown>[]> {
  let text = "";
  await inMemoryFolder(async (folder) => {
    const path = `${folder}/audit.log`;
    const timers = new FakeTimers();
    const environment = { log: new RecordedLog(), timers };
    const options = { path, bytesMax: 1e6, filesMax: 1 };
    const trail = new AuditTrail(AuditLog.open(options, environment), timers);
    act(trail);
    await trail.close();
    text = await Deno.readTextFile(path);
  });
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

Deno.test("both lines of a dial are JSON, and say what is known, whatever that is", async () => {
  await forAll(50, async (prng) => {
    const known = facts(prng);
    const rule = words(prng);
    const reason = words(prng);
    const [dial, end] = await linesOf((trail) => {
      const record = trail.begin(known);
      record.decided({ isAllowed: true, rule }, record.startMs);
      record.ended({ kind: "reset", reason });
    });
    const { target: { protocol, address }, ...others } = known;
    const { time, ...written } = dial!;
    assertEquals(new Date(time as string).toISOString(), time);
    assertEquals(Math.abs(Date.now() - Date.parse(time as string)) < 9e3, true);
    const both = { dial: 1, ...others, protocol, target: address };
    const wanted = { event: "dial", ...both, decision: "allowed", rule };
    assertEquals(written, throughJson(wanted));
    assertEquals([end!.end, end!.reason, end!.dial], [
      "reset",
      throughJson(reason),
      1,
    ]);
  });
});

Deno.test("what is open when the process ends is recorded as lost", async () => {
  const target = { protocol: "tcp", address: "a:1" };
  const lines = await linesOf((trail) => {
    trail.begin({ target }).decided({ isAllowed: true, rule: "" }, 0);
    trail.begin({ target }).decided({ isAllowed: false, rule: "" }, 0);
  });
  assertEquals(lines.map(({ dial, event, end }) => [dial, event, end]), [
    [1, "dial", undefined],
    [2, "dial", undefined],
    [1, "end", "lost"],
  ]);
});

Deno.test("dials of services are recorded with what they led to, and what had left with them", async () => {
  const lines = await linesOf((trail) => {
    const reports = new DialReports(undefined, catalogDials(trail));
    const facts = { id: "f0e1d2c3b4a59687", service: "default/web:80" };
    const askedMs = trail.clock.now();
    const dial = { id: facts.id, facts, askedMs, earlyBytes: 5, kill() {} };
    reports.failed(new DialError("endpoint", "no endpoint is ready"), dial);
    const target = { protocol: "tcp", address: "10.0.0.7:80" };
    const [near] = MemoryConduit.pair();
    const found = { ...dial, facts: { ...facts, target } };
    abandon(reports.connected(near, found, askedMs), "enough");
  });
  const service = "default/web:80";
  assertEquals(
    lines.map(({ time: _, ...line }) => line),
    [
      [1, "dial", {}],
      [1, "end", { end: "failed", reason: "no endpoint is ready" }],
      [2, "dial", { protocol: "tcp", target: "10.0.0.7:80" }],
      [2, "end", {
        ...{ protocol: "tcp", target: "10.0.0.7:80" },
        ...{ end: "reset", reason: "enough" },
      }],
    ].map(([dial, event, more]) => ({
      ...{ event, dial, id: "f0e1d2c3b4a59687", service, ...more as object },
      ...event === "dial"
        ? { decision: "allowed", rule: `the catalog's ${service}` }
        : { bytesToTarget: 5, bytesFromTarget: 0, durationMs: 0 },
    })),
  );
});

/** Half a surrogate is no text of a file. */
function throughJson<T>(value: T): T {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return JSON.parse(new TextDecoder().decode(bytes));
}

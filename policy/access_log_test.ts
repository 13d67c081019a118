import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  type ConnectionFacts,
  ConnectionLog,
} from "../platform/log/connection_log.ts";
import { MetricRegistry } from "../platform/metrics/metrics.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { settled } from "../tests/support/memory/conduit_probe.ts";
import { RecordedLog } from "../tests/support/watch/recorded_log.ts";
import type { AccessFormat } from "./access_format.ts";
import { ACCESS_FLUSH_MS, AccessLog } from "./access_log.ts";
import type { AuditFiles } from "./audit_file.ts";
import { AUDIT_RETRY_MS } from "./audit_log.ts";

const NOBODY = { received() {}, sent() {}, ended() {} };
const FACTS: ConnectionFacts = {
  id: "f0e1d2c3b4a59687",
  who: "CN=alice",
  from: "10.0.0.3:5000",
  node: "edge-7",
  target: { protocol: "tcp", address: "10.0.0.7:5432" },
};

/** An access log whose file is in memory, and the connections it is about. */
class Scene {
  readonly log = new RecordedLog();
  readonly timers = new FakeTimers();
  readonly metrics = new MetricRegistry();
  readonly access: AccessLog;
  readonly connections: ConnectionLog;
  text = "";
  isFull = false;
  opens = 0;

  constructor(format: AccessFormat, sample = 1, random?: () => number) {
    this.log.wantsDetails = false;
    const files: AuditFiles = {
      check() {},
      open: () => {
        this.opens++;
        return Promise.resolve({
          bytes: this.text.length,
          write: (bytes: Uint8Array) => {
            if (this.isFull) throw new Error("No space left on device");
            this.text += new TextDecoder().decode(bytes);
            return Promise.resolve();
          },
          cut: () => Promise.resolve(),
          close() {},
        });
      },
      putAside: () => Promise.resolve(),
    };
    this.access = AccessLog.open({
      file: { path: "x", bytesMax: 1e6, filesMax: 1 },
      format,
      sample,
    }, {
      log: this.log,
      timers: this.timers,
      metrics: this.metrics,
      prefix: "tunnel_test_",
      auditFiles: files,
      ...random && { random },
    })!;
    this.connections = new ConnectionLog(this.log, this.timers, this.access);
  }

  /** One that stands for a second, and carries something. */
  connect(facts: ConnectionFacts = FACTS): void {
    const askedMs = this.timers.now();
    this.timers.advance(4);
    const openedMs = this.timers.now();
    const one = this.connections.connected({ askedMs }, NOBODY, {
      facts,
      openedMs,
    });
    one.sent(30);
    one.received(2_000);
    this.timers.advance(1_000);
    one.ended({ kind: "clean" });
  }

  /** Those that are there when what comes during a write is written, too. */
  async lines(afterMs = ACCESS_FLUSH_MS): Promise<string[]> {
    for (const ms of [afterMs, ACCESS_FLUSH_MS]) {
      this.timers.advance(ms);
      for (let turn = 0; turn < 50; turn++) await settled();
    }
    return this.text.trimEnd().split("\n");
  }
}

Deno.test("JSON: a line for a connection, and one for a dial that failed", async () => {
  const scene = new Scene("json");
  scene.connect();
  const askedMs = scene.timers.now();
  scene.timers.advance(7);
  const error = new DialError("timeout", 'no "answer"');
  scene.connections.failed(error, { askedMs, earlyBytes: 5 }, FACTS);
  const [first, second] = (await scene.lines()).map((line) => JSON.parse(line));
  const known = {
    id: "f0e1d2c3b4a59687",
    who: "CN=alice",
    from: "10.0.0.3:5000",
    node: "edge-7",
    protocol: "tcp",
    target: "10.0.0.7:5432",
  };
  const { time, ...ended } = first;
  assertMatch(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assertEquals(ended, {
    ...known,
    status: 200,
    end: "clean",
    bytesToTarget: 30,
    bytesFromTarget: 2_000,
    dialMs: 4,
    durationMs: 1_004,
  });
  const { time: _, ...failed } = second;
  assertEquals(failed, {
    ...known,
    status: 504,
    end: "failed",
    reason: 'no "answer"',
    bytesToTarget: 5,
    bytesFromTarget: 0,
    dialMs: 7,
    durationMs: 7,
  });
});

Deno.test("text: key=value, in quotes where a value has blanks", async () => {
  const scene = new Scene("text");
  scene.connect({ ...FACTS, who: "socket /run/x" });
  const [line] = await scene.lines();
  assertMatch(line!, /^[-0-9]+T[:.0-9]+Z id=/);
  assertEquals(
    line!.slice(line!.indexOf(" ") + 1),
    "id=f0e1d2c3b4a59687 status=200 " +
      'who="socket /run/x" from=10.0.0.3:5000 node=edge-7 protocol=tcp ' +
      "target=10.0.0.7:5432 end=clean bytesToTarget=30 bytesFromTarget=2000 " +
      "dialMs=4 durationMs=1004",
  );
});

/** What goaccess and its like make of a line, and what is behind that. */
const COMMON = new RegExp(
  /^(\S+) (\S+) (\S+) \[(\d\d\/[A-Z][a-z][a-z]\/\d{4}:\d\d:\d\d:\d\d \+0000)\]/
    .source +
    / "([A-Z]+ \S+ \S+)" (\d{3}) (\d+) (\d+) (\d+) (\S+) (\S+) (\S+)$/
      .source,
);

Deno.test("common: NCSA's line with bytes to the target, ms, node, id and end", async () => {
  const scene = new Scene("common");
  scene.connect({ ...FACTS, from: "[2001:db8::1]:5000" });
  const [, host, ident, user, , request, ...rest] = COMMON.exec(
    (await scene.lines())[0]!,
  )!;
  assertEquals(
    [host, ident, user, request],
    ["2001:db8::1", "-", "CN=alice", "CONNECT 10.0.0.7:5432 tcp"],
  );
  assertEquals(rest, [
    "200",
    "2000",
    "30",
    "1004",
    "edge-7",
    "f0e1d2c3b4a59687",
    "clean",
  ]);
});

Deno.test("nobody can make up a field or a line", async () => {
  const hostile = 'x" 200 1\n10.0.0.1 - root [x] "GET / \u001b[2J é';
  for (const format of ["text", "json", "common"] as const) {
    const scene = new Scene(format);
    scene.connect({
      ...FACTS,
      who: hostile,
      node: hostile,
      target: { protocol: hostile, address: hostile.repeat(50) },
    });
    const lines = await scene.lines();
    assertEquals(lines.length, 1, format);
    assertEquals(/[^\x20-\x7eé…]/.test(lines[0]!), false, format);
    if (format === "json") assertEquals(JSON.parse(lines[0]!).who, hostile);
    if (format === "common") {
      assertMatch(lines[0]!, COMMON);
      assertStringIncludes(lines[0]!, "x\\x22\\x20200\\x201\\x0a10.0.0.1");
    }
  }
});

Deno.test("a sample is drawn by lot, whatever id a caller brings, and has all that failed", async () => {
  const all = 2_000;
  let turns = 0;
  // Every fourth lot wins.
  const scene = new Scene("text", 0.25, () => (turns++ % 4) / 4);
  for (let n = 0; n < all; n++) {
    scene.connect({ ...FACTS, id: "9999999999999999" });
  }
  assertEquals((await scene.lines()).length, all / 4);
  const error = new DialError("no-agent", "nobody");
  for (let n = 0; n < 50; n++) scene.connections.failed(error, {}, FACTS);
  assertEquals((await scene.lines()).length, all / 4 + 50);
  // One lot for each, also where details are wanted beside it.
  scene.log.wantsDetails = true;
  turns = 1;
  for (let n = 0; n < 40; n++) scene.connect();
  assertEquals(turns, 41);
  assertEquals((await scene.lines()).length, all / 4 + 60);
});

Deno.test("lines are made in runs: all are there in order, and the end brings the last", async () => {
  const scene = new Scene("json");
  const known = Array.from({ length: 75 }, (_, at) => `edge-${at}`);
  for (const node of known) scene.connect({ ...FACTS, node });
  await scene.access.close();
  const lines = scene.text.trimEnd().split("\n");
  const read = lines.map((line) => JSON.parse(line));
  assertEquals(read.map(({ node }) => node), known);
  // An end has its own time, however long its line waits for others.
  assertEquals(new Set(read.map(({ durationMs }) => durationMs)).size, 1);
  scene.connect();
  // What comes after the end is counted.
  assertStringIncludes(
    scene.metrics.expose(),
    "\ntunnel_test_access_dropped_lines_total 1\n",
  );
});

Deno.test("a full disk is said once, and connections go on", async () => {
  const scene = new Scene("common");
  scene.isFull = true;
  for (let n = 0; n < 5; n++) {
    scene.connect();
    await scene.lines(AUDIT_RETRY_MS);
  }
  assertEquals(
    scene.log.take().map((line) => line.replace(/:.*/, "")),
    ["error"],
  );
  scene.isFull = false;
  assertEquals((await scene.lines(AUDIT_RETRY_MS)).length, 5);
  assertMatch(scene.log.take()[0]!, /access log x can be written again/);
  scene.access.reopen();
  scene.connect();
  await scene.lines();
  assertEquals(scene.opens, 2);
});

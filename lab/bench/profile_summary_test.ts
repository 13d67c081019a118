import { assertEquals, assertThrows } from "@std/assert";
import {
  areaOf,
  type CpuProfile,
  type ProfileNode,
  summarize,
} from "./profile_summary.ts";

const ROOT = "file:///repo/";

function node(
  id: number,
  functionName: string,
  url = "",
  children: readonly number[] = [],
): ProfileNode {
  return { id, callFrame: { functionName, url, lineNumber: 9 }, children };
}

/** A write that ours asked for, a read that nobody did, GC, and waiting. */
const PROFILE: CpuProfile = {
  nodes: [
    node(1, "(root)", "", [2, 3, 4, 5, 8]),
    node(2, "(idle)"),
    node(3, "(garbage collector)"),
    node(4, "(program)"),
    node(5, "flush", `${ROOT}net/driver.ts`, [6]),
    node(6, "write", "ext:deno_net/01_net.js", [7]),
    node(7, "op_write"),
    node(8, "", "ext:core/01_core.js"),
  ],
  startTime: 0,
  endTime: 2_000,
  samples: [2, 3, 4, 5, 6, 7, 7, 8],
  timeDeltas: [1_000, 100, 100, 100, 200, 300, 100, 100],
};

Deno.test("a profile is summed by area, function and owner", () => {
  const work = { count: 10, unit: "connection" };
  assertEquals(
    summarize(PROFILE, { root: ROOT, rows: 3, work }).split("\n"),
    [
      "8 samples in 2 ms, 1 ms busy; % of the busy time, then µs per connection (10)",
      "",
      "by area",
      "100.0 %   100.00  idle",
      " 50.0 %    50.00  program, operations and system calls",
      " 30.0 %    30.00  platform's JavaScript",
      "",
      "by function (self)",
      " 40.0 %    40.00  op_write",
      " 20.0 %    20.00  write ext:deno_net/01_net.js:10",
      " 10.0 %    10.00  (garbage collector)",
      "",
      "by what of ours asked for it",
      " 70.0 %    70.00  flush net/driver.ts:10",
      " 30.0 %    30.00  nobody of ours",
    ],
  );
});

Deno.test("a frame without a file is the platform's program unless V8 made it up", () => {
  const area = (name: string, url?: string) => areaOf(node(1, name, url), ROOT);
  assertEquals(area("(program)"), "program");
  assertEquals(area("op_accept"), "program");
  assertEquals(area("(idle)"), "idle");
  assertEquals(area("(garbage collector)"), "gc");
  assertEquals(area("read", "ext:deno_net/01_net.js"), "platform");
  assertEquals(area("read", `${ROOT}net/stream/a.ts`), "ours");
  // A function of ours may have any name.
  assertEquals(area("(idle)", `${ROOT}a.ts`), "ours");
});

Deno.test("a sample of no node is no profile", () => {
  assertThrows(
    () => summarize({ ...PROFILE, samples: [99] }, { root: ROOT, rows: 1 }),
    RangeError,
    "no node 99",
  );
});

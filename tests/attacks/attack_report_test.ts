import { assert, assertEquals } from "@std/assert";
import { type Row, summary, tableHead, tableLine } from "./attack_report.ts";

const latency = { requests: 1, failures: 0, p50Ms: 1, p99Ms: 2, maxMs: 3 };

function row(name: string, ratios: readonly number[]): Row {
  return {
    name,
    known: "",
    wanted: "closed",
    endings: { closed: 3 },
    reason: "",
    connections: 3,
    peak: undefined,
    closedMs: 12,
    rssMib: [100, 120, 110],
    cpuSeconds: 0.5,
    attackSeconds: 3,
    calm: latency,
    attacked: latency,
    ratios,
    counters: ["`peer_faults` +3"],
  };
}

Deno.test("the words above the table count what is in it", () => {
  const rows = [row("a", [1, 1.2]), row("b", [1.4, 1.6]), row("c", [1.7, 2])];
  const words = summary(rows, 2);
  assert(words.includes("of 3 attacks 1 stayed below it in every round, 1 in"));
  assert(words.includes("**1 in none** (`c`)"), words);
  assert(words.includes("never had more than 120 MiB"));
});

Deno.test("every line has as many cells as the head", () => {
  const [head, rule] = tableHead().split("\n");
  const cells = (line: string) => line.split("|").length;
  assertEquals(
    [rule!, tableLine(row("a", [1]))].map(cells),
    [cells(head!), cells(head!)],
  );
});

import { assert, assertEquals } from "@std/assert";
import { BenchScreen, progressLine } from "./report.ts";

const TRIPS = {
  kind: "roundTrip",
  bytes: 64,
  count: 8123,
  minMs: 0.2114,
  p50Ms: 0.2401,
  p99Ms: 12.04,
} as const;

/** What it prints; its own line is not of it. */
function screen(isJson: boolean) {
  let text = "";
  const shown = new BenchScreen(
    { route: "grpc over unix:/s", target: "the agent" },
    { isLive: false, isJson },
    { print: (more) => text += more, printError() {} },
  );
  return { shown, lines: () => text.trimEnd().split("\n") };
}

Deno.test("figures and gaps stand in one column, whatever they are", () => {
  const { shown, lines } = screen(false);
  shown.host({ agentId: "node7", software: "tunnel/0" });
  shown.figure(TRIPS);
  shown.figure({
    kind: "down",
    connections: 16,
    mbitPerS: 4_100.4,
    bytes: 2 ** 30,
  });
  shown.figure({ kind: "up", connections: 1, mbitPerS: 9.512, bytes: 2 ** 20 });
  shown.figure({
    ...TRIPS,
    kind: "newConnections",
    connections: 16,
    perS: 3127,
  });
  shown.gap({ kind: "up", connections: 4, reason: "nothing came back" });
  assertEquals(lines(), [
    "agent node7 (tunnel/0), grpc over unix:/s",
    "  round trip                          p50 0.240 ms   min 0.211 ms   p99 12.0 ms   8,123 trips",
    "  down, 16 connections                4,100 Mbit/s   1,024 MiB",
    "  up, 1 connection                     9.51 Mbit/s   1.00 MiB",
    "  new connections, 16 at a time           3,127 /s   p50 0.240 ms   min 0.211 ms   p99 12.0 ms",
    "  up, 4 connections                              –   nothing came back",
  ]);
});

Deno.test("the line that lives fits a terminal, before and after the first sample", () => {
  const plan = { kind: "roundTrip", connections: 1 } as const;
  for (const figure of [undefined, TRIPS]) {
    for (const elapsedMs of [0, 1_000, 5_000]) {
      const line = progressLine(plan, figure, elapsedMs / 2_000);
      assert(line.length < 80, line);
    }
  }
  const half = progressLine(plan, TRIPS, 0.5);
  assertEquals(half.match(/█/g)?.length, 10);
});

Deno.test("JSON says who, by which route, what, and why there is no more", () => {
  const { shown, lines } = screen(true);
  const gap = { kind: "up", connections: 4, reason: "nothing" } as const;
  shown.host({ agentId: "node7", software: "tunnel/0" });
  shown.figure(TRIPS);
  shown.gap(gap);
  shown.end(true, "no more");
  assertEquals(lines().map((line) => JSON.parse(line)), [{
    route: "grpc over unix:/s",
    target: "the agent",
    agent: "node7",
    software: "tunnel/0",
    interrupted: true,
    error: "no more",
    figures: [{ ...TRIPS, minMs: 0.211, p50Ms: 0.24 }],
    gaps: [gap],
  }]);
});

import { assert, assertEquals } from "@std/assert";
import { figureRow, gapRow, progressLine, resultJson } from "./report.ts";

const TRIPS = {
  kind: "roundTrip",
  bytes: 64,
  count: 8123,
  minMs: 0.2114,
  p50Ms: 0.2401,
  p99Ms: 12.04,
} as const;

Deno.test("figures stand in one column, whatever they are", () => {
  const rows = [
    figureRow(TRIPS),
    figureRow({
      kind: "down",
      connections: 16,
      mbitPerS: 4_100.4,
      bytes: 2 ** 30,
    }),
    figureRow({ kind: "up", connections: 1, mbitPerS: 9.512, bytes: 2 ** 20 }),
    figureRow({
      ...TRIPS,
      kind: "newConnections",
      connections: 16,
      perS: 3127,
    }),
  ];
  assertEquals(rows, [
    "  round trip                          p50 0.240 ms   min 0.211 ms   p99 12.0 ms   8,123 trips",
    "  down, 16 connections                4,100 Mbit/s   1,024 MiB",
    "  up, 1 connection                     9.51 Mbit/s   1.00 MiB",
    "  new connections, 16 at a time           3,127 /s   p50 0.240 ms   min 0.211 ms   p99 12.0 ms",
  ]);
});

Deno.test("what came to no figure says why, in the same columns", () => {
  assertEquals(
    gapRow({ kind: "up", connections: 4, reason: "nothing came back" }),
    "  up, 4 connections                              –   nothing came back",
  );
});

Deno.test("the line that lives fits a terminal, before and after the first sample", () => {
  const plan = { kind: "roundTrip", connections: 1 } as const;
  for (const figure of [undefined, TRIPS]) {
    for (const elapsedMs of [0, 1_000, 5_000]) {
      const line = progressLine({ plan, figure, part: elapsedMs / 2_000 });
      assert(line.length < 80, line);
    }
  }
  const half = { plan, figure: TRIPS, part: 0.5 };
  assertEquals(progressLine(half).match(/█/g)?.length, 10);
});

Deno.test("JSON says who, by which route, what, and why there is no more", () => {
  const about = {
    ...{ route: "grpc over unix:/s", target: "the agent" },
    ...{ interrupted: true, error: "no more" },
  };
  const host = { agentId: "node7", software: "tunnel/0" };
  const gap = { kind: "up", connections: 4, reason: "nothing" } as const;
  const result = { host, figures: [TRIPS], gaps: [gap] };
  assertEquals(JSON.parse(resultJson(result, about)), {
    route: "grpc over unix:/s",
    target: "the agent",
    agent: "node7",
    software: "tunnel/0",
    interrupted: true,
    error: "no more",
    figures: [{
      ...TRIPS,
      minMs: 0.211,
      p50Ms: 0.24,
    }],
    gaps: [gap],
  });
});

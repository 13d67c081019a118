import { assertEquals, assertRejects } from "@std/assert";
import { DialError } from "../proto/link/link.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import { FakeTimers } from "../tests/support/fake_timers.ts";
import {
  BENCH_CONDUITS_MAX,
  BenchTargets,
  isBenchDial,
} from "./bench_targets.ts";

const HOST = { agentId: "node7", software: "tunnel/0" };

Deno.test("bench connections are so many at a time", async () => {
  const targets = new BenchTargets(HOST, new FakeTimers());
  const first = await targets.dial();
  for (let i = 1; i < BENCH_CONDUITS_MAX; i++) await targets.dial();
  await assertRejects(() => targets.dial(), DialError, "128 bench connections");
  abandon(first, "done");
  await targets.dial();
});

Deno.test("an agent that is not to be measured says so", async () => {
  const options = { connectionsMax: 0 };
  const targets = new BenchTargets(HOST, new FakeTimers(), options);
  await assertRejects(() => targets.dial(), DialError, "--bench-target=false");
});

Deno.test("only the reserved name over TCP is the bench target", () => {
  const address = "bench.tunnel.invalid:7";
  assertEquals(isBenchDial({ protocol: "tcp", address }), true);
  assertEquals(isBenchDial({ protocol: "udp", address }), false);
  const other = "bench.tunnel.example:7";
  assertEquals(isBenchDial({ protocol: "tcp", address: other }), false);
});

import { assert, assertEquals } from "@std/assert";
import { START_ORDERS } from "./cold_start.ts";
import { inRoundTrips } from "./first_answer.ts";
import { connectionsIn } from "./line.ts";
import { seeds, whatLineDid } from "./line_metric.ts";

Deno.test("connectionsIn() counts connections with the agent's end only", () => {
  const printed = [
    "0 0 10.99.0.1:8091 10.99.0.2:45216",
    "0 0 [::ffff:10.99.0.1]:8091 [::ffff:10.99.0.2]:45220",
    "0 0 127.0.0.1:7001 127.0.0.1:40000",
    "",
  ];
  assertEquals(connectionsIn(printed.join("\n")), 2);
});

Deno.test("seeds() gives everybody the same losses in the same order", () => {
  const seedOf = seeds();
  const drawn = ["ours", "direct", "ours", "direct"].map(seedOf);
  assertEquals(drawn, [1, 1, 2, 2]);
});

Deno.test("inRoundTrips() divides by the round trip of the bare line", () => {
  const sample = inRoundTrips({ p50us: 104_000, p99us: 130_000 }, 52);
  assertEquals(sample["p50rtts"]!, 2);
  assertEquals(sample["p99rtts"]!, 2.5);
});

Deno.test("whatLineDid() adds losses and keeps the longest queue", () => {
  const way = {
    packets: 9,
    bytes: 900,
    lost: 1,
    dropped_at_full_queue: 2,
    longest_queue_bytes: 300,
  };
  const sample = whatLineDid({
    a_to_b: way,
    b_to_a: { ...way, lost: 4, longest_queue_bytes: 100 },
  });
  assertEquals(sample, { lineLost: 5, lineDropped: 4, lineQueueBytes: 300 });
});

Deno.test("cold starts are 20, each end first in half of them", () => {
  assertEquals(START_ORDERS.length, 20);
  const agentFirst = START_ORDERS.filter((order) => order.isAgentFirst);
  assertEquals(agentFirst.length, 10);
  // And each end meets every delay.
  const delays = (isAgentFirst: boolean) =>
    START_ORDERS.filter((order) => order.isAgentFirst === isAgentFirst)
      .map((order) => order.offsetMs);
  assertEquals(delays(true), delays(false));
  assert(delays(true).includes(0));
});

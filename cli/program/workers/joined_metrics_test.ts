import { assertEquals } from "@std/assert";
import { joinedMetrics } from "./group_answers.ts";

const worker = (dials: number) =>
  `# HELP dials Dials.
# TYPE dials counter
dials{result="ok, {\\"0\\"}"} ${dials}
dials{result="failed"} 0
# HELP memory_bytes Memory.
# TYPE memory_bytes gauge
memory_bytes ${dials}000
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{le="+Inf"} ${dials}
took_seconds_sum 0.5
took_seconds_count ${dials}
`;

Deno.test("each series says whose it is, and a family is in one piece", () => {
  const text = joinedMetrics([
    { worker: 0, text: worker(1) },
    { worker: 1, text: worker(2) },
    {
      text: "# HELP workers Up.\n# TYPE workers gauge\nworkers 2\n" +
        "# HELP memory_bytes Memory.\n# TYPE memory_bytes gauge\nmemory_bytes 3\n",
    },
  ]);
  assertEquals(
    text,
    `# HELP dials Dials.
# TYPE dials counter
dials{worker="0",result="ok, {\\"0\\"}"} 1
dials{worker="0",result="failed"} 0
dials{worker="1",result="ok, {\\"0\\"}"} 2
dials{worker="1",result="failed"} 0
# HELP memory_bytes Memory.
# TYPE memory_bytes gauge
memory_bytes{worker="0"} 1000
memory_bytes{worker="1"} 2000
memory_bytes 3
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{worker="0",le="+Inf"} 1
took_seconds_sum{worker="0"} 0.5
took_seconds_count{worker="0"} 1
took_seconds_bucket{worker="1",le="+Inf"} 2
took_seconds_sum{worker="1"} 0.5
took_seconds_count{worker="1"} 2
# HELP workers Up.
# TYPE workers gauge
workers 2
`,
  );
});

Deno.test("nothing is made of nothing", () => {
  assertEquals(joinedMetrics([]), "");
  assertEquals(joinedMetrics([{ worker: 0, text: "" }]), "");
});

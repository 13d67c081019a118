import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { processMetrics } from "../../../net/program/program.ts";
import { GroupAnswers, type Workers } from "./group_answers.ts";

type Worker = Workers["workers"][number];

/** Answers this; `undefined`: it does not answer. */
type Say = (path: string) => Response | undefined;

function group(...says: Say[]): GroupAnswers {
  return groupOf(says.map((say, index): Worker => ({
    index,
    isSilent: false,
    ask: (path) => Promise.resolve(say(path)),
  })));
}

function groupOf(workers: readonly Worker[], restarts = 0): GroupAnswers {
  const answers = new GroupAnswers(processMetrics("workers"));
  answers.open({ workers, count: workers.length, restarts });
  return answers;
}

async function answered(of: GroupAnswers, path: string, method = "GET") {
  const url = `http://localhost${path}`;
  const response = await of.to({ method, url });
  return `${response.status} ${await response.text()}`;
}

const ready: Say = () => new Response("ok");
const unready: Say = () => new Response("no agent", { status: 500 });

Deno.test("a program is ready while one worker is", async () => {
  assertEquals(await answered(group(ready, unready), "/readyz"), "200 ok");
  assertEquals(await answered(group(unready, ready), "/ready"), "200 ok");
  assertEquals(
    await answered(group(unready, unready), "/readyz"),
    "500 no agent",
  );
  assertEquals(await answered(group(), "/readyz"), "503 no worker answers");
  assertEquals(
    await answered(new GroupAnswers(processMetrics("workers")), "/readyz"),
    "503 the workers are starting",
  );
  assertEquals(
    await answered(group(unready, ready), "/readyz?verbose"),
    "200 ok[!]1 of 2 workers are not ready\n[!]worker 0: no agent\n",
  );
  const lists: Say = () =>
    new Response("[+]ping ok\n[-]source failed: away\n", { status: 503 });
  assertMatch(
    await answered(group(lists, ready), "/readyz?verbose"),
    /\[!\]worker 0: source failed: away\n$/,
  );
});

Deno.test("a worker that does not answer keeps no probe waiting", async () => {
  const frozen: Worker = {
    index: 0,
    isSilent: false,
    ask: () => new Promise(() => {}),
  };
  const awake: Worker = {
    index: 1,
    isSilent: false,
    ask: () => Promise.resolve(new Response("ok")),
  };
  assertEquals(
    await answered(groupOf([frozen, awake]), "/readyz"),
    "200 ok",
  );
  // Once it is known to be silent it is not asked at all.
  assertEquals(
    await answered(
      groupOf([{ ...frozen, isSilent: true }, awake]),
      "/readyz?verbose",
    ),
    "200 ok[!]1 of 2 workers are not ready\n",
  );
});

/** What a worker says that has dialed so often. */
const metrics = (dials: number): Say => () =>
  new Response(`# HELP dials Dials.
# TYPE dials counter
dials{result="ok, {\\"0\\"}"} ${dials}
# HELP process_resident_memory_bytes Memory.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes ${dials}000
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{le="+Inf"} ${dials}
took_seconds_count ${dials}
`);

Deno.test("metrics say whose they are, a family in one piece, and how many workers there are", async () => {
  const text = await answered(group(metrics(1), metrics(2)), "/metrics");
  for (
    const family of [
      `# HELP dials Dials.
# TYPE dials counter
dials{worker="0",result="ok, {\\"0\\"}"} 1
dials{worker="1",result="ok, {\\"0\\"}"} 2
# HELP`,
      `# TYPE took_seconds histogram
took_seconds_bucket{worker="0",le="+Inf"} 1
took_seconds_count{worker="0"} 1
took_seconds_bucket{worker="1",le="+Inf"} 2
took_seconds_count{worker="1"} 2
# HELP`,
      "\ntunnel_workers 2\n",
      "\ntunnel_worker_restarts_total 0\n",
    ]
  ) assertStringIncludes(text, family);
  // The parent's own has no label.
  assertMatch(
    text,
    /\nprocess_resident_memory_bytes\{worker="1"\} 2000\nprocess_resident_memory_bytes \d+\n/,
  );
  // Of one that does not answer there is nothing, and no sum that lacks it.
  const one = await answered(group(() => undefined, metrics(2)), "/metrics");
  assertMatch(one, /# TYPE dials counter\ndials\{worker="1"/);
});

Deno.test("what is about one worker is said to be elsewhere", async () => {
  const of = group(ready, ready);
  assertEquals(await answered(of, "/healthz"), "200 ok");
  assertMatch(
    await answered(of, "/debug/pprof/"),
    /^404 .* each worker answers this on its admin socket\n$/,
  );
  assertMatch(await answered(of, "/readyz", "POST"), /^405 /);
});

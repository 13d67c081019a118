import { assertEquals } from "@std/assert";
import { WorkerAnswers } from "./worker_answers.ts";
import type { WorkerAnswer, WorkerProcess } from "./worker_process.ts";

type Say = (path: string) => Partial<WorkerAnswer> & { readonly text: string };

/** A worker that says this. */
function worker(index: number, say: Say): WorkerProcess {
  const ask = ({ path }: { path: string }): Promise<WorkerAnswer> => {
    const { text, ...more } = say(path);
    return Promise.resolve({
      status: 200,
      contentType: "text/plain",
      location: "",
      body: new TextEncoder().encode(text),
      ...more,
    });
  };
  return { index, pid: 100 + index, ask } as unknown as WorkerProcess;
}

async function answered(path: string, ...says: Say[]): Promise<string> {
  const workers = says.map((say, index) => worker(index, say));
  const answers = new WorkerAnswers({
    workers,
    count: workers.length,
    restarts: 0,
    isDraining: false,
  });
  const request = new Request(`http://localhost${path}`);
  const response = await answers.answer("health", request);
  return `${response.status} ${await response.text()}`;
}

const ready: Say = () => ({ text: "ok" });
const unready: Say = () => ({ status: 500, text: "no agent" });

Deno.test("a program is ready while one worker is", async () => {
  assertEquals(await answered("/readyz", ready, unready), "200 ok");
  assertEquals(await answered("/readyz", unready, ready), "200 ok");
  assertEquals(await answered("/readyz", unready, unready), "500 no agent");
  assertEquals(await answered("/readyz"), "503 no worker is up");
  assertEquals(
    await answered("/readyz?verbose", unready, ready),
    "200 ok[!]1 of 2 workers are not ready\n[!]worker 0: no agent\n",
  );
});

Deno.test("a worker that does not answer keeps no probe waiting", async () => {
  const never: Say = () => {
    throw new Error("it is frozen");
  };
  const frozen = worker(0, never);
  frozen.ask = () => new Promise(() => {});
  const answers = new WorkerAnswers({
    workers: [frozen, worker(1, ready)],
    count: 2,
    restarts: 0,
    isDraining: false,
  });
  const request = new Request("http://localhost/readyz");
  assertEquals((await answers.answer("health", request)).status, 200);
});

Deno.test("one worker alone is asked by its number", async () => {
  assertEquals(
    await answered("/readyz?worker=1", ready, unready),
    "500 no agent",
  );
  assertEquals(await answered("/readyz?worker=2", ready), "503 no such worker");
});

Deno.test("who may not be told by one worker is not told by any", async () => {
  const json = { contentType: "application/json" };
  const one: Say = () => ({ ...json, text: '{"clients":["a"]}' });
  const other: Say = () => ({ ...json, text: '{"clients":["b"]}' });
  const guarded: Say = () => ({ status: 401, text: "show a token" });
  assertEquals(
    (await answered("/debug/syncz", one, other)).replaceAll(/\s/g, ""),
    '200{"clients":["a","b"]}',
  );
  assertEquals(
    await answered("/debug/syncz", one, guarded),
    "401 show a token",
  );
});

Deno.test("a profile is one worker's, and short", async () => {
  const say: Say = (path) => ({ text: path });
  const path = "/debug/pprof/profile?seconds=2";
  assertEquals(await answered(path, say, say), `200 ${path}`);
  assertEquals(
    await answered("/debug/pprof/profile", say),
    "400 Cannot profile a worker for so long, wanted at most ?seconds=8\n",
  );
});

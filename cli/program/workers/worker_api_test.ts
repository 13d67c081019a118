import { assertEquals } from "@std/assert";
import type { AdminWho } from "../../../net/admin/admin_api.ts";
import { ScriptedStream } from "../../../tests/support/memory/scripted_stream.ts";
import { WorkerApi } from "./worker_api.ts";
import type { WorkerProcess, WorkerQuestion } from "./worker_process.ts";

type Answer = readonly [status: number, body: unknown];
type Say = (question: WorkerQuestion) => Answer;

const WHO: AdminWho = { role: "operate", name: "uid 0" };

function worker(index: number, say: Say, asked: string[]): WorkerProcess {
  const ask = (question: WorkerQuestion) => {
    asked.push(`${index} ${question.method} ${question.path}`);
    const [status, body] = say(question);
    return Promise.resolve({
      status,
      contentType: "application/json",
      location: "",
      body: new TextEncoder().encode(JSON.stringify(body)),
    });
  };
  return { index, ask } as unknown as WorkerProcess;
}

async function ask(method: string, path: string, ...says: Say[]) {
  const asked: string[] = [];
  const api = new WorkerApi({
    workers: says.map((say, index) => worker(index, say, asked)),
    count: says.length,
    restarts: 0,
    isDraining: false,
  });
  const request = new Request(`http://localhost${path}`, { method });
  const response = await api.answer(request, new ScriptedStream(), WHO);
  return { status: response.status, said: await response.json(), asked };
}

const node = (name: string, more: object = {}) => ({
  name,
  state: "online",
  isJoined: true,
  links: 1,
  conduits: 2,
  toTargetRate: 10,
  fromTargetRate: 20,
  servers: [],
  ...more,
});

Deno.test("a node is online where one worker has it, and its links are added", async () => {
  const one = {
    nodes: [
      node("a", { roundTripMs: 9, since: "2026-01-02", servers: ["s"] }),
      node("b", { state: "offline", since: "2026-01-01", links: 0 }),
    ],
    total: 2,
  };
  const other = {
    nodes: [
      node("a", { roundTripMs: 4, since: "2026-01-01", servers: ["s-w1"] }),
      node("b", { since: "2026-01-03" }),
      node("c", { state: "offline", problem: "gone" }),
    ],
    total: 3,
  };
  const says: Say[] = [() => [200, one], () => [200, other]];
  const { said } = await ask("GET", "/v1/nodes", ...says);
  assertEquals(said, {
    nodes: [
      node("a", {
        links: 2,
        conduits: 4,
        toTargetRate: 20,
        fromTargetRate: 40,
        roundTripMs: 4,
        since: "2026-01-01",
        servers: ["s", "s-w1"],
      }),
      node("b", {
        conduits: 4,
        toTargetRate: 20,
        fromTargetRate: 40,
        since: "2026-01-03",
      }),
      node("c", { state: "offline", problem: "gone" }),
    ],
    total: 3,
  });
  const names = async (query: string) => {
    const { said } = await ask("GET", `/v1/nodes?${query}`, ...says);
    return [
      ...said.nodes.map(({ name }: { name: string }) => name),
      said.total,
    ];
  };
  assertEquals(await names("state=offline"), ["c", 1]);
  assertEquals(await names("after=a&limit=1"), ["b", 3]);
});

const conduit = (id: string, toTargetRate: number, toTargetBytes: number) => ({
  id,
  toTargetRate,
  fromTargetRate: 0,
  toTargetBytes,
  fromTargetBytes: 0,
});

Deno.test("conduits are joined, sorted and limited; events are by time", async () => {
  const says: Say[] = [
    () => [200, {
      conduits: [conduit("a", 5, 1), conduit("b", 1, 9)],
      total: 7,
    }],
    () => [200, { conduits: [conduit("c", 3, 5)], total: 1 }],
  ];
  const ids = async (query: string) => {
    const { said } = await ask("GET", `/v1/conduits${query}`, ...says);
    return [...said.conduits.map(({ id }: { id: string }) => id), said.total];
  };
  assertEquals(await ids(""), ["a", "c", "b", 8]);
  assertEquals(await ids("?sort=bytes&limit=2"), ["b", "c", 8]);
  const event = (at: string) => ({ at, kind: "linked", message: at });
  const { said } = await ask(
    "GET",
    "/v1/events?limit=3",
    () => [200, { events: [event("4"), event("1")] }],
    () => [200, { events: [event("3"), event("2")] }],
  );
  assertEquals(said, { events: [event("4"), event("3"), event("2")] });
});

const traffic = (conduits: number, dialP99Ms: number) => ({
  conduits,
  pendingDials: 0,
  toTargetBytes: 100,
  fromTargetBytes: 0,
  toTargetRate: 1,
  fromTargetRate: 0,
  dialRate: 0.5,
  failedDials: 1,
  dialP99Ms,
});

const status = (pid: number, more: object) => ({
  program: {
    program: "server",
    id: "s",
    pid,
    isReady: pid === 2,
    isDraining: false,
    residentBytes: 10,
  },
  warnings: [{ severity: "warning", message: "the clock is off" }],
  expiries: [{
    what: `frontend ${pid}`,
    at: `2027-0${pid}`,
    renewal: "by hand",
  }],
  ...more,
});

Deno.test("a status is of the program: parts are added, the same is said once", async () => {
  const counts = (online: number, gone: string[]) => ({
    online,
    offline: 3 - online,
    pending: 0,
    revoked: 0,
    links: online,
    lastGone: gone.map((name) => ({ name })),
    slowest: [],
  });
  const { said } = await ask(
    "GET",
    "/v1/status",
    () => [
      200,
      status(1, { traffic: traffic(2, 5), nodes: counts(1, ["a", "b"]) }),
    ],
    () => [
      200,
      status(2, { traffic: traffic(3, 50), nodes: counts(2, ["b"]) }),
    ],
  );
  assertEquals(said.program.isReady, true);
  assertEquals([said.program.pid, said.program.workers], [Deno.pid, 2]);
  assertEquals(said.program.residentBytes, 20);
  assertEquals(said.warnings.length, 1);
  const { conduits, toTargetBytes, dialRate, dialP99Ms } = said.traffic;
  assertEquals([conduits, toTargetBytes, dialRate, dialP99Ms], [5, 200, 1, 50]);
  assertEquals(said.nodes.online, 2);
  assertEquals(said.nodes.links, 3);
  assertEquals(said.nodes.lastGone, [{ name: "b" }]);
});

Deno.test("what is done is asked of one after the other, until one knows of it", async () => {
  const unknown: Say = () => [404, { message: "not here" }];
  const done: Say = () => [200, { message: "done" }];
  const path = "/v1/conduits/1/kill";
  const second = await ask("POST", path, unknown, done, done);
  assertEquals([second.status, second.asked], [200, [
    `0 POST ${path}`,
    `1 POST ${path}`,
  ]]);
  assertEquals((await ask("POST", path, unknown, unknown)).status, 404);
  const refused: Say = () => [403, { message: "no" }];
  assertEquals((await ask("POST", path, refused, done)).status, 403);
  // Its agents are linked to every worker.
  const drain = "/v1/nodes/a/drain";
  const drained = await ask("POST", drain, unknown, done, done);
  assertEquals([drained.status, drained.asked.length], [200, 3]);
  assertEquals((await ask("POST", drain, unknown)).status, 404);
  const ping = (address: string): Say => () => [
    200,
    { node: "a", links: [{ address }] },
  ];
  const pinged = await ask("POST", "/v1/nodes/a/ping", ping("x"), ping("y"));
  assertEquals(pinged.said, {
    node: "a",
    links: [{ address: "x" }, { address: "y" }],
  });
});

Deno.test("a worker that fails is left out, and none is an answer too", async () => {
  const broken: Say = () => {
    throw new Error("it is gone");
  };
  const one = await ask(
    "GET",
    "/v1/config",
    broken,
    () => [200, { flags: [] }],
  );
  assertEquals([one.status, one.said], [200, { flags: [] }]);
  assertEquals((await ask("GET", "/v1/config", broken)).status, 503);
  assertEquals((await ask("PUT", "/v1/config", broken)).status, 405);
});

Deno.test("who watches is sent what changes, and what is gone", async () => {
  let round = 0;
  const lists = [["a", "b"], ["a"]];
  const say: Say = ({ path }) => {
    if (path.startsWith("/v1/status")) {
      round++;
      return [200, status(1, { traffic: traffic(round, 1) })];
    }
    const nodes = lists[Math.min(round, 2) - 1]!.map((name) => node(name));
    return [200, { nodes, total: nodes.length }];
  };
  const api = new WorkerApi({
    workers: [worker(0, say, [])],
    count: 1,
    restarts: 0,
    isDraining: false,
  });
  const gone = new AbortController();
  const request = new Request("http://localhost/v1/watch?lists=nodes", {
    signal: gone.signal,
  });
  const response = await api.answer(request, new ScriptedStream(), WHO);
  let text = "";
  for await (const bytes of response.body!) {
    text += new TextDecoder().decode(bytes);
    if (text.includes('"gone":["b"]')) break;
  }
  gone.abort();
  const events = text.split("\n\n").filter((one) => one.startsWith("event: n"))
    .map((one) => JSON.parse(one.split("data: ")[1]!));
  assertEquals(events, [
    { isWhole: true, changed: [node("a"), node("b")], gone: [] },
    { isWhole: false, changed: [], gone: ["b"] },
  ]);
});

import { assertEquals, assertMatch } from "@std/assert";
import {
  AGENT_STATUS,
  CONDUITS_ANSWER,
  NODE,
  NODES,
  SERVER_STATUS,
} from "../../tests/support/rigs/ask_answers.ts";
import type { ConduitInfo } from "../../proto/admin/node_answer.ts";
import { firstState } from "../../admin/ask/top_state.ts";
import { screenLines } from "../../admin/ask/top_text.ts";
import { FakeAdmin } from "../../tests/support/rigs/fake_admin.ts";
import { tunnel, words } from "../../tests/support/program/command_line.ts";

const [CONDUIT] = CONDUITS_ANSWER.conduits;
const CONDUIT_PATH = `/v1/conduits/${CONDUIT!.id}`;

const ANSWERS = {
  "/v1/status": SERVER_STATUS,
  "/v1/nodes": NODES,
  "/v1/nodes/edge-7": NODE,
  "/v1/conduits": CONDUITS_ANSWER,
  [CONDUIT_PATH]: CONDUIT,
  [`${CONDUIT_PATH}/kill`]: { message: "" },
};

Deno.test("status shows a server, and asks it one thing", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const { code, output } = await admin.tunnel("status");
  assertEquals(code, 0);
  assertMatch(output, /^server hub-1 {2}ready {2}up 3d4h/);
  assertMatch(output, /error\[TUN203\]: /);
  assertEquals(admin.asked, ["GET /v1/status"]);
});

Deno.test("--exit-code is for scripts: 6 with an error, 0 without", async () => {
  await using server = await FakeAdmin.open(ANSWERS);
  await using agent = await FakeAdmin.open({ "/v1/status": AGENT_STATUS });
  const codeOf = async (...argv: string[]) =>
    (await tunnel(["status", "--exit-code", ...argv])).code;
  assertEquals(await codeOf("--server", server.socket), 6);
  assertEquals(await codeOf("--agent", agent.socket), 0);
});

Deno.test("status finds what runs on this machine, and shows each", async () => {
  const home = await Deno.makeTempDir();
  await using server = await FakeAdmin.open(ANSWERS);
  await using agent = await FakeAdmin.open({ "/v1/status": AGENT_STATUS });
  // As an ordinary user; root's programs are elsewhere.
  const uid = Deno.uid;
  Deno.uid = () => 1_000;
  try {
    const at = (...argv: string[]) =>
      tunnel(argv, words(argv, { XDG_STATE_HOME: home }));
    const none = await at("status");
    // A program of whoever runs this test may be at the usual ports.
    if (none.code === 1) assertMatch(none.errors, /name one with --server/);
    await Deno.mkdir(`${home}/tunnel`);
    await Deno.symlink(server.directory, `${home}/tunnel/server`);
    await Deno.symlink(agent.directory, `${home}/tunnel/agent`);
    const { code, output } = await at("status");
    assertEquals(code, 0);
    assertMatch(output, /^server hub-1 [^]*\n\nagent edge-7 /);
    const json = await at("status", "-o", "json");
    const { programs } = JSON.parse(json.output);
    assertEquals(programs.length, 2);
    assertEquals(programs[1].program.id, "edge-7");
    // Connections are the server's, as it knows most of them.
    await at("conn", "list");
    assertEquals(server.asked.at(-1), "GET /v1/conduits?sort=rate&limit=100");
  } finally {
    Deno.uid = uid;
    await Deno.remove(home, { recursive: true });
  }
});

Deno.test("JSON of one that is named is its answer alone", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const { output } = await admin.tunnel("status", "--json");
  assertEquals(JSON.parse(output), SERVER_STATUS);
});

Deno.test("status ends with 1 when nobody answers", async () => {
  const nowhere = ["--server", "unix:/nowhere/admin.sock"];
  const { code, errors } = await tunnel(["status", ...nowhere]);
  assertEquals(code, 1);
  assertMatch(errors, /Cannot ask the server at unix:\/nowhere/);
});

Deno.test("node list and describe ask the server", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const list = await admin.tunnel("node", "list", "--only", "offline");
  assertEquals(list.errors, "");
  assertMatch(list.output, /^NAME +STATE +FOR +VERSION/);
  const wide = await admin.tunnel("node", "list", "-o", "wide");
  assertMatch(wide.output, /CERTIFICATE UNTIL/);
  const one = await admin.tunnel("node", "describe", "edge-7");
  assertMatch(one.output, /^node edge-7 {2}online/);
  assertEquals(admin.asked, [
    "GET /v1/nodes?state=offline",
    "GET /v1/nodes",
    "GET /v1/nodes/edge-7",
  ]);
});

Deno.test("a name is one segment of the path, whatever is in it", async () => {
  await using admin = await FakeAdmin.open({});
  const hostile = "../conduits?x";
  const { code, errors } = await admin.tunnel("node", "describe", hostile);
  assertEquals(code, 1);
  assertMatch(errors, /there is none/);
  assertEquals(admin.asked, ["GET /v1/nodes/..%2Fconduits%3Fx"]);
});

Deno.test("conn list asks for what its flags say", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const { output } = await admin.tunnel(
    ...["conn", "list", "--node", "a&b"],
    ...["--target", ":5432", "--sort", "queue", "--limit", "5"],
  );
  assertMatch(output, /^ID +CALLER +NODE/);
  assertMatch(output, /3 of 10,003 connections; --limit shows more/);
  assertEquals(admin.asked, [
    "GET /v1/conduits?node=a%26b&target=%3A5432&sort=queue&limit=5",
  ]);
});

Deno.test("conn kill says what it ended, and asks a person before", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const kill = ["conn", "kill", "--server", admin.socket, CONDUIT!.id];
  const { code, output } = await tunnel(kill);
  assertEquals(code, 0);
  assertEquals(
    output,
    "Ended the connection 00c0ffee00c0ffee of alice to 10.0.0.7:5432 at " +
      "edge-7 (service default/db, 1.2 MB/s): both ends see a reset\n",
  );
  assertEquals(admin.asked.at(-1), `POST ${CONDUIT_PATH}/kill`);
  admin.asked.length = 0;
  const questions: string[] = [];
  const confirm = (question: string) => questions.push(question) > 1;
  assertMatch((await tunnel(kill, { confirm })).output, /^Left the conn/);
  assertEquals(admin.asked.some((line) => line.startsWith("POST")), false);
  assertMatch((await tunnel(kill, { confirm })).output, /^Ended the conn/);
  assertMatch(
    questions[0]!,
    /^End the connection 00c0ffee00c0ffee of alice to 10/,
  );
  await tunnel([...kill, "--yes"], { confirm });
  assertEquals(questions.length, 2);
});

Deno.test("conn kill goes on behind one that is gone, and ends with 1", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const kill = ["conn", "kill", "gone", CONDUIT!.id];
  const { code, output, errors } = await admin.tunnel(...kill);
  assertEquals(code, 1);
  assertMatch(output, /^Ended the connection 00c0ffee/);
  assertMatch(errors, /there is none\n.*Ended 1 of 2/);
});

Deno.test("top prints blocks in a pipe, and lines of JSON", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const top = ["top", "--interval", "200ms", "--count", "1"];
  const { output } = await admin.tunnel(...top);
  assertMatch(output, /^10:03:12 {2}10,003 connections, [^]*\nID +CALLER/);
  const json = await admin.tunnel(...top, "-o", "json");
  const { conduits } = JSON.parse(json.output.split("\n")[0]!);
  assertEquals(conduits.total, CONDUITS_ANSWER.total);
});

Deno.test("verbs and flags that do not go together are refused", async () => {
  for (
    const [argv, wanted] of [
      [["conn", "kill"], /wanted tunnel conn kill ID…/],
      [["conn", "kill", "1", "--sort", "age"], /--sort with conn kill/],
      [["conn", "list", "x"], /Unexpected word "x"/],
      [["conn", "kill", "1", "--json"], /--json with conn kill.* list/],
      [["conn", "kill", "1", "--interval=1s"], /--interval with conn kill/],
      [["node", "revoke", "a", "--agent=local"], /--agent/],
      [["node", "revoke", "a", "--server=x:1"], /--server with node revoke/],
      [["node", "forget", "a", "--token-file=t"], /--token-file with node fo/],
      [["node", "approve", "a", "-w"], /--watch with node approve.* list/],
      [["node", "describe", "a", "--state=/s"], /--state with node describe/],
      [["node", "list", "--proxy=local"], /--proxy/],
      [["node", "list", "--json", "--only=online"], /--only with --json/],
      [["node", "list", "--state=/s", "--server=x:1"], /--server with --state/],
      [["xds", "status", "--agent=local"], /--agent/],
      [["ping", "a", "--agent=local"], /--agent/],
      [["trace", "a:1", "--proxy=local"], /--proxy/],
      [["policy", "test", "a:1", "--as=x", "--proxy=local"], /--proxy/],
      [
        ["policy", "test", "a:1", "--as=x", "--file=p", "--server=x:1"],
        /--server with --file/,
      ],
      [["doctor", "--server=x:1"], /--server with doctor of this machine/],
      [["doctor", "node", "a", "--as=x"], /--as with doctor node.* target/],
      [["node", "describe"], /wanted tunnel node describe NAME/],
      [["node", "list", "--only", "nearby"], /online, offline, pending/],
      [["status", "now"], /Unexpected word "now"/],
      [["top", "--sort", "name"], /rate, bytes, age/],
    ] as const
  ) {
    const { code, errors } = await tunnel(argv);
    assertEquals(code, 2, errors);
    assertMatch(errors, wanted);
  }
});

Deno.test("a variable for several commands is in the way of none", async () => {
  await using admin = await FakeAdmin.open(ANSWERS);
  const argv = ["node", "describe", "edge-7", "--server", admin.socket];
  const variables = { TUNNEL_STATE: "/nowhere", TUNNEL_AGENT: "local" };
  const { code, errors } = await tunnel(argv, words(argv, variables));
  assertEquals(code, 0, errors);
});

/** A screen of 80 columns, asked whether `conduit` is to be ended. */
function question(conduit: ConduitInfo): string {
  const page = { columns: 80, isPlain: true, paint: (text: string) => text };
  const mode = { kind: "confirm", conduit } as const;
  const lines = screenLines(page, 5, { ...firstState("rate", ""), mode }, {
    status: SERVER_STATUS,
    conduits: { conduits: [conduit], total: 1 },
  });
  for (const line of lines) assertEquals(line.length <= 80, true, line);
  return lines.at(-1)!;
}

Deno.test("the question of top names port, node and choice in 80 columns", () => {
  const caller = "socket /var/lib/tunnel/server/frontend.sock";
  const local = { ...CONDUIT!, caller, target: "tcp 127.0.0.1:5432" };
  assertEquals(
    question(local),
    "End 127.0.0.1:5432 at edge-7? y/n  (frontend.sock, 00c0ffee00c0ffee)",
  );
  const target = `tcp ${"long.".repeat(30)}example:8443`;
  assertMatch(
    question({ ...local, target }),
    /^End long\.long.*…:8443 at edge-7\? y\/n/,
  );
});

Deno.test("connections of a proxy are told by service and who came", async () => {
  const conduit = {
    ...CONDUIT!,
    caller: "",
    from: "127.0.0.1:40112",
    service: "default/web",
    target: "tcp 127.0.0.1:9076",
  };
  const { node: _, ...own } = conduit;
  const path = `/v1/conduits/${own.id}`;
  await using admin = await FakeAdmin.open({
    "/v1/conduits": { conduits: [own], total: 1 },
    [path]: own,
    [`${path}/kill`]: { message: "" },
  });
  const proxy = ["--proxy", admin.socket];
  const list = await tunnel(["conn", "list", ...proxy]);
  const [head, row] = list.output.split("\n");
  assertMatch(head!, /^ID +CALLER +SERVICE +TARGET +AGE/);
  assertMatch(row!, /127\.0\.0\.1:40112 +default\/web +127\.0\.0\.1:9076/);
  const killed = await tunnel(["conn", "kill", own.id, "--yes", ...proxy]);
  assertMatch(
    killed.output,
    /^Ended the connection \w+ of 127\.0\.0\.1:40112 to 127\.0\.0\.1:9076 \(/,
  );
  assertMatch(killed.output, /\(service default\/web, .*: both ends see/);
});

Deno.test("status --since shows a dozen rows of the server's hour", async () => {
  const samples = Array.from({ length: 360 }, (_, index) => ({
    at: new Date(Date.parse("2026-11-22T09:03:10Z") + index * 10_000)
      .toISOString(),
    ...{ conduits: index, toTargetRate: 100, fromTargetRate: 200 },
    ...{ dialRate: 2, failedDials: 1 },
    ...index < 30 ? { dialP50Ms: 3, dialP99Ms: 900 } : {},
  }));
  await using admin = await FakeAdmin.open({
    ...ANSWERS,
    "/v1/history": { stepMs: 10_000, samples },
  });
  const { output } = await admin.tunnel("status", "--since", "1h");
  assertEquals(
    admin.asked.at(-1),
    "GET /v1/history?since=2026-11-22T09:03:12.345Z",
  );
  const rows = output.split("\n")
    .filter((line) => /^ {2}2026-11-22 \d\d:/.test(line));
  assertEquals(rows.length, 12);
  assertMatch(
    rows[0]!,
    /09:03:10Z +29 +100 B\/s +200 B\/s +2\.0 +3\.0 ms +900 ms +30$/,
  );
  assertMatch(rows[11]!, /09:58:10Z +359 .* - +- +30$/);
});

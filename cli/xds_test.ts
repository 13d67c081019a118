import { assertEquals, assertMatch } from "@std/assert";
import type {
  ClientDiff,
  ClientSummary,
} from "../services/discovery/status/client_answers.ts";
import { diffText, statusText, XDS_COMMAND } from "./xds.ts";
import { ran } from "../tests/support/program/command_line.ts";

const KIND = {
  kind: "cluster",
  type: "Cluster",
  names: 0,
  wildcard: true,
  state: "synced",
  lagMs: 0,
  responses: 2,
  acks: 1,
  nacks: 1,
  stale: 0,
} as const;

const CLIENT: ClientSummary = {
  client: "edge-7/envoy",
  node: "edge-7",
  form: "envoy",
  mode: "sotw",
  from: "10.0.0.7:4000",
  software: "envoy 1.40.0",
  connectedMs: 1_000,
  keptBytes: 0,
  foreignTypes: [],
  waitsFor: [],
  kinds: [],
};

const response = (version: string) => ({ version, nonce: "n1", agoMs: 5 });
const refusal = (message: string) => ({
  ...response("x"),
  ...{ code: 3, message, names: [] },
});

/** The lines below the heads of the columns. */
function statusLines(
  clients: readonly Partial<ClientSummary>[],
  sources: Parameters<typeof statusText>[0]["sources"] = [],
): readonly string[] {
  const all = clients.map((client) => ({ ...CLIENT, ...client }));
  const ready = sources.every(({ synced }) => synced);
  return statusText({ ready, sources, clients: all }).trimEnd().split("\n")
    .slice(1);
}

Deno.test("what clients call themselves says nothing to the terminal", () => {
  const client = "evil\u001b]0;owned\u0007\u202e";
  const kinds = [{ ...KIND, nacked: refusal("\u001b[2J") }];
  const summary = { ...CLIENT, client };
  const texts = [
    statusLines([{ client, kinds }]).join("\n"),
    diffText([{ summary, kinds: [], unserved: [] }], false),
  ];
  for (const text of texts) {
    assertEquals(/[^\P{Cc}\n]|\p{Cf}/u.test(text), false, text);
  }
});

Deno.test("statusText() says what routes wait for, and what they did not", () => {
  const early = { agoMs: 1_230, clusters: ["a/b:1", "a/c:1"] };
  assertEquals(statusLines([{ waitsFor: ["default/b:80"] }, { early }]), [
    "edge-7/envoy: its listeners and routes wait until it has acknowledged " +
    "default/b:80",
    "edge-7/envoy: was sent listeners and routes 1.2 s ago before it had " +
    "acknowledged a/b:1, a/c:1",
  ]);
});

Deno.test("statusText() has a line for each client and kind", () => {
  const known = response("0123456789ab");
  const kinds = [{ ...KIND, sent: known, acked: known }, {
    ...KIND,
    ...{ kind: "endpoints", wildcard: false, names: 3 } as const,
    ...{ state: "waiting", lagMs: 2_340 } as const,
    sent: response("aaaaaaaabb"),
    nacked: refusal("bad\n  port"),
  }];
  const lines = statusLines([{ kinds }], [{ name: "file", synced: true }]);
  assertEquals(lines.map((line) => line.split(/ {2,}/)), [
    // deno-fmt-ignore: one row.
    ["edge-7/envoy", "envoy/sotw", "cluster", "*", "synced", "01234567", "01234567", "-", "2/1/1"],
    // deno-fmt-ignore: one row.
    ["edge-7/envoy", "envoy/sotw", "endpoints", "3", "waiting", "aaaaaaaa", "-", "2.3 s", "2/1/1", "bad port"],
  ]);
});

Deno.test("statusText() says why nobody is answered, and what is away", () => {
  const sources = [
    { name: "etcd", synced: false, problem: "nobody answers" },
    { name: "file", synced: true },
  ];
  assertEquals(statusLines([], sources).slice(0, 2), [
    "source etcd: nobody answers",
    "no client is answered yet: etcd has not said all it has",
  ]);
});

Deno.test("diffText() shows what differs, and what cannot be served", () => {
  const diff: ClientDiff = {
    summary: CLIENT,
    kinds: [{
      kind: "endpoints",
      resources: [
        { name: "a", has: "11111111", wants: "22222222", state: "waiting" },
        { name: "b", has: "33333333", wants: "33333333", state: "synced" },
        { name: "c", state: "absent" },
      ],
    }],
    unserved: [{ service: "default/far", reason: "port 90: no way there" }],
  };
  assertEquals(diffText([diff], false).split("\n"), [
    "edge-7/envoy (envoy, sotw, from 10.0.0.7:4000)",
    "KIND       NAME  STATE    HAS       SHOULD HAVE  REFUSAL",
    "endpoints  a     waiting  11111111  22222222",
    "endpoints  c     absent   -         -",
    "not served: default/far: port 90: no way there",
    "",
  ]);
  assertEquals(diffText([diff], true).includes("33333333"), true);
  assertEquals(
    diffText([{ summary: CLIENT, kinds: [], unserved: [] }], false),
    "edge-7/envoy (envoy, sotw, from 10.0.0.7:4000)\n" +
      "has everything as it should be\n",
  );
});

Deno.test("diffText() says what was refused and why, and what is not served", () => {
  const nacked = refusal("bad\n  at 0");
  const kinds = [{ ...KIND, state: "refused", nacked }] as const;
  const foreignTypes = ["type.googleapis.com/a.Secret"];
  const summary = { ...CLIENT, kinds, foreignTypes };
  const linesOf = (client: ClientDiff) =>
    diffText([client], false).split("\n").slice(1);
  const served = { ...summary, kinds: [] };
  assertEquals(linesOf({ summary: served, kinds: [], unserved: [] }), [
    "has everything that is served as it should be",
    "not served: type.googleapis.com/a.Secret: there is nothing of that type",
    "",
  ]);
  const unnamed = { ...summary, foreignTypes: [] };
  assertEquals(linesOf({ summary: unnamed, kinds: [], unserved: [] }), [
    "refused: cluster: bad at 0",
    "",
  ]);
  const reason = "bad\n  at 0";
  const resource = { name: "a", wants: "2", state: "refused", reason } as const;
  const named = { kind: "cluster", resources: [resource] } as const;
  assertEquals(linesOf({ summary: unnamed, kinds: [named], unserved: [] }), [
    "KIND     NAME  STATE    HAS  SHOULD HAVE  REFUSAL",
    "cluster  a     refused  -    2            bad at 0",
    "",
  ]);
});

Deno.test("statusText() says of which types a client asks in vain", () => {
  const foreignTypes = ["type.googleapis.com/a.Secret"];
  assertEquals(statusLines([{ foreignTypes }]), [
    "edge-7/envoy: asks for types that are not served: " +
    "type.googleapis.com/a.Secret",
  ]);
});

Deno.test("the token of this machine's server is shown to no other unless it is named", async () => {
  const shown: (string | null)[] = [];
  const everywhere = { hostname: "0.0.0.0", port: 0, onListen: () => {} };
  await using server = Deno.serve(everywhere, (request) => {
    shown.push(request.headers.get("authorization"));
    return new Response("no", { status: 403 });
  });
  const { port } = server.addr;
  const ask = async (...argv: string[]) => {
    const readFile = () => `${"ab".repeat(32)}\n`;
    const { run } = XDS_COMMAND;
    return (await ran(run, ["status", ...argv], { readFile })).errors;
  };
  // As good as another machine's: no address of loopback.
  const away = ["--server", `0.0.0.0:${port}`];
  assertMatch(await ask(...away), /is shown to loopback alone/);
  await ask("--server", `127.0.0.1:${port}`);
  await ask(...away, "--state-dir", "/srv/tunnel");
  const token = `Bearer ${"ab".repeat(32)}`;
  assertEquals(shown, [null, token, null]);
});

import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { certifiedCaller } from "../../tests/support/memory/fake_caller.ts";
import type { Caller } from "./caller.ts";
import { DialAuthorizer } from "./dial_authorizer.ts";
import { Policy } from "./policy.ts";
import { Catalog } from "../../services/catalog/catalog.ts";
import type { Via } from "../../services/catalog/model/model.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  endpointOf,
  ScriptedSource,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { RECENTLY_REMOVED_MS } from "../../services/catalog/recently_removed.ts";
import { CatalogReach } from "./catalog_reach.ts";
import { readPolicy } from "./authorization.ts";
import { callerNamed, type PolicySource, ruleReport } from "./rule_report.ts";
import { targetNamed } from "../../policy/target_address.ts";

const POLICY = new Policy({
  frontends: [
    { commonName: "ops", nodes: ["edge-*"], allow: ["tcp:*:80"] },
  ],
});

/** An authorizer, asked what `caller` may dial over an agent's link. */
function setUp(policy?: Policy, caller: Caller = certifiedCaller("ops")) {
  const refused = { dials: 0 };
  const authorizer = new DialAuthorizer({
    ...(policy === undefined ? {} : { policy: { current: policy } }),
    refused: () => refused.dials++,
  });
  const ask = (address: string, node?: string, agent?: string) =>
    authorizer.authorize(
      { target: { protocol: "tcp", address }, caller, node },
      agent === undefined ? undefined : new FakeLink(agent).peer,
    ).refusal;
  return { ask, refused, authorizer };
}

Deno.test("without a policy every dial is admitted", () => {
  const { ask, refused } = setUp();
  assertEquals(ask("a:80", undefined, "core-1"), undefined);
  assertEquals(refused.dials, 0);
});

Deno.test("a decision depends on the agent that would be asked", () => {
  const { ask, refused } = setUp(POLICY);
  assertEquals(ask("a:80", undefined, "edge-1"), undefined);
  assertEquals(
    ask("a:80", undefined, "core-1")?.message,
    "Cannot dial tcp a:80: refused, no rule of the server allows it (no entry " +
      "about CN=ops is about node core-1); add an allow rule for it to its " +
      "policy file",
  );
  assertEquals(ask("a:22", undefined, "edge-1")?.reason, "refused");
  assertEquals(refused.dials, 2);
});

Deno.test("a caller that may not reach a node does not learn whether it is there", () => {
  const { ask } = setUp(POLICY);
  assertMatch(ask("a:80", "core-1")!.message, /refused, no rule of the server/);
  assertEquals(
    ask("a:80", "core-1")?.message,
    ask("a:80", "core-1", "core-1")?.message,
  );
  // The dialer answers this one that there is no such agent.
  assertEquals(ask("a:80", "edge-9"), undefined);
});

/** What node edge-9 is told. */
function setUpNode(policy?: Policy) {
  const caller = { ...certifiedCaller("node:edge-9"), node: "edge-9" };
  const { ask, ...rest } = setUp(policy, caller);
  const askNode = (address: string, agent?: string) =>
    ask(address, agent && `id=${agent}`, agent)?.message;
  return { ...rest, ask: askNode };
}

/** The catalog has `web` at 10.0.0.7:80 behind edge-1. */
const REACH = {
  isComplete: true,
  serviceOf: (node: string, agent: string | undefined, { address }: {
    readonly address: string;
  }) =>
    node === "edge-9" && agent === "id=edge-1" && address === "10.0.0.7:80"
      ? "default/web"
      : undefined,
};

Deno.test("a node may dial services that it sees, and nothing else", () => {
  const { ask, authorizer, refused } = setUpNode();
  const why = "Cannot dial tcp 10.0.0.7:80: refused, no rule of the server " +
    "allows it (no service that edge-9 sees has it); add an allow rule for it " +
    "to its policy file";
  assertEquals(ask("10.0.0.7:80", "edge-1"), why);
  authorizer.reach = REACH;
  assertEquals(ask("10.0.0.7:80", "edge-1"), undefined);
  assertEquals(ask("10.0.0.7:80"), why);
  assertEquals(ask("10.0.0.7:80", "edge-2"), why);
  assertMatch(ask("10.0.0.7:22", "edge-1")!, /no service that edge-9 sees/);
  assertEquals(refused.dials, 4);
});

Deno.test("a server that does not know all services yet sends a node to the next one", () => {
  const policy = new Policy({ dials: [{ node: "*", deny: ["tcp:*:22"] }] });
  const { ask, authorizer, refused } = setUpNode(policy);
  authorizer.reach = { ...REACH, isComplete: false };
  assertEquals(ask("10.0.0.7:80", "edge-1"), undefined);
  assertMatch(
    ask("10.0.0.8:80", "edge-1")!,
    /^No agent available: .* not know all services yet/,
  );
  assertMatch(
    ask("10.0.0.8:22", "edge-1")!,
    /refused by the server.s rule dials/,
  );
  assertEquals(refused.dials, 1);
});

Deno.test("rules for frontends are not about nodes, and theirs about nobody else", () => {
  const policy = new Policy({
    frontends: [{ commonName: "*", allow: ["*:*:*"] }],
    dials: [
      { node: "edge-*", nodes: ["gw-*"], allow: ["tcp:10.0.0.0/8:*"] },
      { node: "*", deny: ["tcp:*:22", "tcp:10.0.0.7:*"] },
    ],
  });
  const { ask, authorizer } = setUpNode(policy);
  authorizer.reach = REACH;
  assertEquals(ask("10.1.0.1:80", "gw-1"), undefined);
  assertMatch(ask("10.1.0.1:80", "edge-1")!, /no service that edge-9 sees/);
  assertMatch(ask("10.1.0.1:22", "gw-1")!, /rule dials\[1\]\.deny\[0\]/);
  // Denied is denied, in the catalog or not.
  assertMatch(ask("10.0.0.7:80", "edge-1")!, /rule dials\[1\]\.deny\[1\]/);
  const caller = certifiedCaller("node:edge-9");
  const target = { protocol: "tcp", address: "10.0.0.7:22" };
  const { refusal } = authorizer.authorize(
    { target, caller, node: undefined },
    new FakeLink("core").peer,
  );
  assertEquals(refusal, undefined);
});

function catalogReach() {
  const source = new ScriptedSource("script");
  const catalog = new Catalog({
    sources: [source],
    log: new RecordedLog(),
    timers: new FakeTimers(),
    random: () => 0,
  });
  const hidden = new Set<string>();
  const clock = new FakeTimers();
  const reach = new CatalogReach({
    catalog,
    clock,
    visibleTo: (node) => ({
      id: node,
      sees: (service) => !hidden.has(`${node} ${service}`),
    }),
  });
  catalog.start();
  const has = (agent: string | undefined, address: string, protocol = "tcp") =>
    reach.serviceOf("n", agent, { protocol, address });
  return { source, hidden, has, clock };
}

const behind = (key: "id" | "host" | "uid" | "cidr", value: string): Via => ({
  kind: "agent",
  agent: { key, value },
});

Deno.test("a target is one by its address, its port and its agent", () => {
  const { source, has } = catalogReach();
  source.sink.add({
    services: [serviceOf("web")],
    endpoints: [{
      service: "default/web",
      endpoints: [
        endpointOf("10.0.0.7:80", { via: behind("id", "Edge-1") }),
        endpointOf("10.0.0.8:80", { via: behind("host", "node8") }),
        endpointOf("10.0.0.9:80", { via: { kind: "agent" } }),
        endpointOf("web.internal:80", { via: behind("uid", "u1") }),
        endpointOf("10.0.0.10:80", {
          state: "unready",
          via: behind("id", "b"),
        }),
        endpointOf("10.0.0.11:80"),
      ],
    }],
  });
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [agent: string | undefined, address: string, is: boolean])[] = [
    ["id=Edge-1",   "10.0.0.7:80",           true ],
    ["id=Edge-1",   "[::ffff:10.0.0.7]:80",  true ],
    ["id=edge-1",   "10.0.0.7:80",           false],
    ["Edge-1",      "10.0.0.7:80",           false],
    [undefined,     "10.0.0.7:80",           false],
    ["id=Edge-1",   "10.0.0.7:81",           false],
    ["id=Edge-1",   "10.0.0.8:80",           false],
    ["node8",       "10.0.0.8:80",           true ],
    ["host=NODE8",  "10.0.0.8:80",           true ],
    [undefined,     "10.0.0.9:80",           true ],
    ["node8",       "10.0.0.9:80",           false],
    ["uid=u1",      "WEB.internal.:80",      true ],
    ["id=b",        "10.0.0.10:80",          true ],
    [undefined,     "10.0.0.11:80",          false],
    ["id=Edge-1",   "10.0.0.7",              false],
    ["id=Edge-1",   "0x0a.7:80",             false],
  ];
  for (const [agent, address, is] of cases) {
    const service = is ? "default/web" : undefined;
    assertEquals(has(agent, address), service, `${agent} ${address}`);
  }
  assertEquals(has("id=Edge-1", "10.0.0.7:80", "udp"), undefined);
  assertEquals(has("id=Edge-1", "10.0.0.7:80", "unix"), undefined);
});

Deno.test("what the catalog does not have any more is no target in the end", () => {
  const { source, has, clock } = catalogReach();
  const endpoint = endpointOf("10.0.0.7:80", { via: { kind: "agent" } });
  const at = (service: string) => ({ service, endpoints: [endpoint] });
  source.sink.add({
    services: [serviceOf("a"), serviceOf("b")],
    endpoints: [at("default/a"), at("default/b")],
  });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/a");
  source.sink.remove({ services: ["default/a"] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  source.sink.add({ endpoints: [{ service: "default/b", endpoints: [] }] });
  // Its clients may not know it yet.
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  clock.advance(2 * RECENTLY_REMOVED_MS);
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
  source.sink.add({ services: [serviceOf("a")] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/a");
});

Deno.test("a direct endpoint is one where its service may go round", () => {
  const { source, has } = catalogReach();
  const policy = { agentOnFailure: true };
  const endpoints = [{
    service: "default/web",
    endpoints: [endpointOf("10.0.0.7:80")],
  }];
  source.sink.add({ services: [serviceOf("web")], endpoints });
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
  source.sink.add({ services: [serviceOf("web", 80, { policy })] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/web");
});

Deno.test("a service that a node does not see gives it nothing", () => {
  const { source, hidden, has } = catalogReach();
  const endpoint = endpointOf("10.0.0.7:80", { via: { kind: "agent" } });
  const at = (service: string) => ({ service, endpoints: [endpoint] });
  source.sink.add({
    services: [serviceOf("a"), serviceOf("b")],
    endpoints: [at("default/a"), at("default/b")],
  });
  hidden.add("n default/a");
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  hidden.add("n default/b");
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
});

const TEXT = `frontends:
  - commonName: alice
    nodes: [node1]
    allow: ["tcp:10.0.0.0/8:5432", "tcp:*.internal:443"]
  - organization: ops
    allow: ["*:*:*"]
    deny:
      - tcp:*:25
  - socket: /run/a.sock
    allow: ["unix:/run/app/*"]
dials:
  - node: edge-*
    allow: ["tcp:10.1.0.0/16:80"]
`;

const REPORTED: PolicySource = {
  path: "policy.yaml",
  text: TEXT,
  current: readPolicy("policy.yaml", TEXT),
};
const AUTHORIZER = new DialAuthorizer({ policy: REPORTED, refused() {} });

function report(target: string, as: string, node?: string, groups?: string[]) {
  const dial = { caller: callerNamed(as, groups), target: targetNamed(target) };
  return ruleReport({ ...dial, node }, undefined, AUTHORIZER, REPORTED);
}

Deno.test("the rule that decides is named with its line", () => {
  const allowed = report("10.0.0.7:5432", "alice", "node1");
  assertEquals(allowed.isAllowed, true);
  assertEquals(allowed.place, "policy.yaml:4");
  const denied = report("mail:25", "carol", undefined, ["ops"]);
  assertEquals([denied.isAllowed, denied.place], [false, "policy.yaml:8"]);
  assertEquals(denied.rule, "frontends[1].deny[0] tcp:*:25");
  const socket = report("unix:/run/app/x", "socket:/run/a.sock");
  assertEquals([socket.isAllowed, socket.place], [true, "policy.yaml:10"]);
});

Deno.test("where no rule matches, the nearest is named and what it misses", () => {
  const cases: [string, string, string | undefined, string][] = [
    ["10.0.0.7:5433", "alice", "node1", ":4): port 5433 is not in it"],
    ["10.0.0.7:5432", "alice", "node2", "its entry is not about node2"],
    ["10.0.0.7:5432", "bob", "node1", "its entry is not about CN=bob"],
    ["udp:10.0.0.7:5432", "alice", "node1", "it is about tcp"],
    ["9.0.0.7:5432", "alice", "node1", "the address is not in it"],
    ["10.1.0.1:81", "node:edge-7", undefined, ":13): port 81 is not in it"],
    ["nonsense", "alice", "node1", "it is not HOST:PORT"],
  ];
  for (const [target, as, node, words] of cases) {
    const { isAllowed, rule, message } = report(target, as, node);
    assertEquals([isAllowed, rule], [false, undefined], target);
    assertStringIncludes(message, words);
  }
});

Deno.test("the report says what a dial is answered", () => {
  const nodes = [undefined, "node1", "node2"];
  const callers = ["alice", "bob", "node:edge-7", "socket:/run/a.sock"];
  const targets = [
    "10.0.0.7:5432",
    "x.internal:443",
    "a:25",
    "unix:/run/app/x",
  ];
  let allowed = 0;
  for (const node of nodes) {
    for (const as of callers) {
      for (const target of targets) {
        const dial = {
          caller: callerNamed(as, ["ops"]),
          target: targetNamed(target),
          node,
        };
        const { refusal } = AUTHORIZER.authorize(dial, undefined);
        const { isAllowed } = report(target, as, node, ["ops"]);
        assertEquals(isAllowed, refusal === undefined, `${as} ${target}`);
        if (isAllowed) allowed++;
      }
    }
  }
  assert(allowed > 0);
});

Deno.test("without a policy nothing restricts callers", () => {
  const authorizer = new DialAuthorizer({ refused() {} });
  const dial = {
    caller: callerNamed("alice"),
    target: targetNamed("a:1"),
    node: undefined,
  };
  const answer = ruleReport(dial, undefined, authorizer, undefined);
  assertEquals(answer, {
    isAllowed: true,
    message: "CN=alice may dial a:1: no policy restricts callers",
  });
});

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { readPolicy } from "./authorization.ts";
import { DialAuthorizer } from "./dial_authorizer.ts";
import {
  callerNamed,
  type PolicySource,
  ruleReport,
  targetNamed,
} from "./rule_report.ts";

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

const POLICY: PolicySource = {
  path: "policy.yaml",
  text: TEXT,
  current: readPolicy("policy.yaml", TEXT),
};
const AUTHORIZER = new DialAuthorizer({ policy: POLICY, refused() {} });

function report(target: string, as: string, node?: string, groups?: string[]) {
  const dial = { caller: callerNamed(as, groups), target: targetNamed(target) };
  return ruleReport({ ...dial, node }, undefined, AUTHORIZER, POLICY);
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

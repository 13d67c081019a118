import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { AdminFailure, type AdminRequest } from "../../net/admin/admin_api.ts";
import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import { DialAuthorizer } from "../../server/policy/dial_authorizer.ts";
import { ruleReport } from "../../server/policy/rule_report.ts";
import { policyRoute } from "./policy_route.ts";

const ROUTE = policyRoute({
  authorization: {
    report: (dial, agent) =>
      ruleReport(
        dial,
        agent,
        new DialAuthorizer({ refused() {} }),
        undefined,
      ),
  },
  registry: { pick: () => ({ kind: "noAgent", message: "" }) as never },
});

function ask(body: unknown): PolicyAnswer {
  return ROUTE.answer({ body } as AdminRequest) as PolicyAnswer;
}

Deno.test("a question about the policy is answered with a sentence", () => {
  const { isAllowed, message } = ask({ as: "alice", target: "a:1" });
  assertEquals(isAllowed, true);
  assertStringIncludes(message, "CN=alice may dial a:1");
});

Deno.test("a node that is not linked is said to be none", () => {
  const { message } = ask({ as: "alice", target: "a:1", node: "n77" });
  assertStringIncludes(message, 'no node "n77" is linked');
});

Deno.test("what is no question is refused with a code", () => {
  const long = "x".repeat(301);
  const bad = [
    undefined,
    {},
    { as: "alice" },
    { as: "", target: "a:1" },
    { as: "alice", target: 5 },
    { as: "alice", target: long },
    { as: "alice", target: "a:1", node: 5 },
    { as: "alice", target: "a:1", groups: "ops" },
    { as: "alice", target: "a:1", groups: Array(101).fill("g") },
  ];
  for (const body of bad) {
    const error = assertThrows(() => ask(body), AdminFailure);
    assertEquals([error.status, error.problem.code], [400, "TUN123"]);
  }
});

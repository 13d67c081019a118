import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { AdminFailure, type AdminRequest } from "../../net/admin/admin_api.ts";
import { parseRule } from "../../policy/rule.ts";
import { RuleSet } from "../../policy/rule_set.ts";
import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import { agentPolicyRoute } from "./agent_routes.ts";

const labelled = (flag: string) => (text: string) => ({
  rule: parseRule(text),
  label: `${flag} ${text}`,
});
const RULES = new RuleSet({
  allow: ["tcp:10.0.0.0/8:5432", "tcp:*.internal:443", "tcp:db.example:1"]
    .map(labelled("--allow")),
  deny: ["tcp:10.6.6.6:*"].map(labelled("--deny")),
});

async function ask(
  body: unknown,
  rules: RuleSet | undefined = RULES,
): Promise<PolicyAnswer> {
  const route = agentPolicyRoute({
    rules: () => rules,
    allowUnix: ["/run/app.sock"],
    resolver: {
      lookup: (host) =>
        Promise.resolve([host === "bad.internal" ? "10.6.6.6" : "10.0.0.7"]),
    },
  });
  return await route.answer({ body } as AdminRequest) as PolicyAnswer;
}

Deno.test("an agent says which of its rules decides", async () => {
  const cases: [string, boolean, string | undefined][] = [
    ["10.0.0.7:5432", true, "--allow tcp:10.0.0.0/8:5432"],
    ["10.6.6.6:5432", false, "--deny tcp:10.6.6.6:*"],
    ["10.0.0.7:80", false, undefined],
    ["a.internal:443", true, "--allow tcp:*.internal:443"],
    ["bad.internal:443", false, "--deny tcp:10.6.6.6:*"],
    ["udp:10.0.0.7:5432", false, undefined],
    ["unix:/etc/x.sock", false, undefined],
    ["nonsense", false, undefined],
  ];
  for (const [target, isAllowed, rule] of cases) {
    const answer = await ask({ target });
    assertEquals([answer.isAllowed, answer.rule], [isAllowed, rule], target);
    assertStringIncludes(answer.message, "this agent");
  }
});

Deno.test("an agent without rules says so", async () => {
  const route = agentPolicyRoute({ rules: () => undefined, allowUnix: [] });
  const body = { target: "10.0.0.7:1" };
  const answer = await route.answer({ body } as AdminRequest) as PolicyAnswer;
  assertEquals(answer.isAllowed, true);
  assertStringIncludes(answer.message, "it has no rules");
});

Deno.test("what is no target is refused with a code", async () => {
  for (
    const body of [undefined, {}, { target: 5 }, { target: "x".repeat(301) }]
  ) {
    const error = await assertRejects(() => ask(body), AdminFailure);
    assertEquals(error.problem.code, "TUN123");
  }
});

import { assertEquals, assertMatch } from "@std/assert";
import { FakeLink } from "../../tests/support/fake_link.ts";
import { certifiedCaller } from "../../tests/support/fake_caller.ts";
import { DialControl } from "./dial_control.ts";
import { Policy } from "./policy.ts";

const POLICY = new Policy({
  frontends: [
    { commonName: "ops", nodes: ["edge-*"], allow: ["tcp:*:80"] },
  ],
});

function setUp(policy?: Policy) {
  const refused: string[] = [];
  const control = new DialControl({
    ...(policy === undefined ? {} : { policy: { current: policy } }),
    refused: ({ message }) => void refused.push(message),
  });
  const ask = (address: string, node?: string, agent?: string) =>
    control.admit(
      {
        target: { protocol: "tcp", address },
        caller: certifiedCaller("ops"),
        node,
      },
      agent === undefined ? undefined : new FakeLink(agent).peer,
    ).refusal;
  return { ask, refused };
}

Deno.test("without a policy every dial is admitted", () => {
  const { ask, refused } = setUp();
  assertEquals(ask("a:80", undefined, "core-1"), undefined);
  assertEquals(refused, []);
});

Deno.test("a dial is judged by the agent that would be asked", () => {
  const { ask, refused } = setUp(POLICY);
  assertEquals(ask("a:80", undefined, "edge-1"), undefined);
  assertEquals(
    ask("a:80", undefined, "core-1")?.message,
    "Cannot dial tcp a:80: refused, no rule of the server allows it (no entry " +
      "about CN=ops is about node core-1); add an allow rule for it to its " +
      "policy file",
  );
  assertEquals(ask("a:22", undefined, "edge-1")?.reason, "refused");
  assertEquals(refused.length, 2);
});

Deno.test("who may not reach a node does not learn whether it is there", () => {
  const { ask } = setUp(POLICY);
  assertMatch(ask("a:80", "core-1")!.message, /refused, no rule of the server/);
  assertEquals(
    ask("a:80", "core-1")?.message,
    ask("a:80", "core-1", "core-1")?.message,
  );
  // This one is told that there is no such agent, by the dialer.
  assertEquals(ask("a:80", "edge-9"), undefined);
});

import { assertEquals, assertMatch } from "@std/assert";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { certifiedCaller } from "../../tests/support/memory/fake_caller.ts";
import { DialAuthorizer } from "./dial_authorizer.ts";
import { Policy } from "./policy.ts";

const POLICY = new Policy({
  frontends: [
    { commonName: "ops", nodes: ["edge-*"], allow: ["tcp:*:80"] },
  ],
});

function setUp(policy?: Policy) {
  const refused = { dials: 0 };
  const authorizer = new DialAuthorizer({
    ...(policy === undefined ? {} : { policy: { current: policy } }),
    refused: () => refused.dials++,
  });
  const ask = (address: string, node?: string, agent?: string) =>
    authorizer.authorize(
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

/** A server on which the catalog has `web` at 10.0.0.7:80 behind edge-1. */
function setUpNodes(policy?: Policy) {
  const refused = { dials: 0 };
  const authorizer = new DialAuthorizer({
    ...(policy === undefined ? {} : { policy: { current: policy } }),
    refused: () => refused.dials++,
  });
  const ask = (address: string, agent?: string) => {
    const caller = { ...certifiedCaller("node:edge-9"), node: "edge-9" };
    const { refusal } = authorizer.authorize({
      target: { protocol: "tcp", address },
      caller,
      node: agent === undefined ? undefined : `id=${agent}`,
    }, agent === undefined ? undefined : new FakeLink(agent).peer);
    return refusal?.message;
  };
  return { ask, refused, authorizer };
}

const REACH = {
  serviceOf: (node: string, agent: string | undefined, { address }: {
    readonly address: string;
  }) =>
    node === "edge-9" && agent === "id=edge-1" && address === "10.0.0.7:80"
      ? "default/web"
      : undefined,
};

Deno.test("a node may dial services that it sees, and nothing else", () => {
  const { ask, authorizer, refused } = setUpNodes();
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

Deno.test("rules for frontends are not about nodes, and theirs about nobody else", () => {
  const policy = new Policy({
    frontends: [{ commonName: "*", allow: ["*:*:*"] }],
    dials: [
      { node: "edge-*", nodes: ["gw-*"], allow: ["tcp:10.0.0.0/8:*"] },
      { node: "*", deny: ["tcp:*:22", "tcp:10.0.0.7:*"] },
    ],
  });
  const { ask, authorizer } = setUpNodes(policy);
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
    {
      ...new FakeLink("core").peer,
    },
  );
  assertEquals(refusal, undefined);
});

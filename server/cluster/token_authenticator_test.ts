import { assertEquals, assertStringIncludes } from "@std/assert";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import { reviewToken } from "../../neighbours/kubernetes/token_review.ts";
import type {
  KubernetesNode,
  Pod,
  TokenReview,
} from "../../neighbours/kubernetes/objects.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { parseIdentifiers } from "../../proto/peer/identifiers.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { tokenSaying } from "../../tests/support/peers/service_account_tokens.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { authorize } from "../links/authorizer.ts";
import type { NodeBinding } from "../options.ts";
import { NodeAddresses, PodNodes } from "./cluster_nodes.ts";
import {
  flawOf,
  TOKEN_CLOCK_SKEW_MS,
  tokenAuthenticator,
} from "./token_authenticator.ts";
import { TOKEN_LENGTH_MAX } from "../../neighbours/kubernetes/access.ts";

const AUDIENCE = "system:konnectivity-server";
const USER = "system:serviceaccount:kube-system:konnectivity-agent";

const TOKEN = tokenSaying({ sub: USER, aud: [AUDIENCE] });

type Answer = TokenReview["status"] | Error;

/** An authenticator of an API server that says `answer` of every token. */
function setUp(
  answer: Answer,
  binding: NodeBinding = "warn",
  node?: KubernetesNode,
  pod?: Pod,
) {
  const outcomes: string[] = [];
  const warnings: string[] = [];
  const seen: TokenReview["spec"][] = [];
  const asked: string[] = [];
  const client = {
    create: <T>(_path: string, body: T): Promise<T> => {
      seen.push((body as TokenReview).spec);
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve({ ...body, status: answer });
    },
    get: <T>(path: string): Promise<T> => {
      asked.push(path);
      if (path.includes("/pods/") && pod !== undefined) {
        return Promise.resolve(pod as T);
      }
      if (path.includes("/nodes/") && node !== undefined) {
        return Promise.resolve(node as T);
      }
      const forbidden = new KubernetesError(403, "Forbidden", `no ${path}`);
      return Promise.reject(forbidden);
    },
  };
  const authorizer = tokenAuthenticator({
    wanted: {
      namespace: "kube-system",
      serviceAccount: "konnectivity-agent",
      audience: AUDIENCE,
    },
    reviews: { of: (token) => reviewToken(client, token, AUDIENCE, 1000) },
    addresses: new NodeAddresses(client, new FakeTimers()),
    pods: new PodNodes(client, new FakeTimers()),
    binding,
    wallClock: Date.now,
    observer: {
      reviewed: (outcome) => outcomes.push(outcome),
      mismatched: () => outcomes.push("mismatched"),
      warn: (message) => warnings.push(message),
    },
  });
  const ask = async (
    { token = TOKEN, agentId = "agent", identifiers = "" } = {},
  ) => {
    const refusal = await authorize([authorizer], {
      token,
      peer: {
        agentId,
        identifiers: parseIdentifiers(identifiers, "server"),
        identity: ANONYMOUS,
        remoteAddress: "10.0.0.7:1",
        carrier: "packets",
        software: "",
      },
    });
    return refusal;
  };
  return { ask, outcomes, warnings, seen, asked };
}

function good(extra: Record<string, string[]> = {}): TokenReview["status"] {
  return {
    authenticated: true,
    audiences: [AUDIENCE],
    user: { username: USER, extra },
  };
}

function boundTo(node: string, pod = "agent-x7k2p"): TokenReview["status"] {
  return good({
    "authentication.kubernetes.io/node-name": [node],
    "authentication.kubernetes.io/pod-name": [pod],
  });
}

Deno.test("a token of the wanted ServiceAccount and audience is admitted", async () => {
  const { ask, outcomes, seen } = setUp(boundTo("edge1"));
  assertEquals(await ask({ agentId: "edge1" }), undefined);
  assertEquals(outcomes, ["admitted"]);
  assertEquals(seen, [{ token: TOKEN, audiences: [AUDIENCE] }]);
});

Deno.test("without a token and a certificate the refusal names the next step, without a review", async () => {
  const { ask, seen } = setUp(good());
  const refusal = await ask({ token: "" });
  assertEquals(refusal?.code, StatusCode.UNAUTHENTICATED);
  assertStringIncludes(refusal!.message, "set --service-account-token-path");
  const other = await ask({
    token: tokenSaying({ sub: USER, aud: ["vault"] }),
  });
  assertEquals(other?.code, StatusCode.UNAUTHENTICATED);
  assertEquals(seen, []);
});

Deno.test("a token that is not good is unauthenticated, with a reason", async () => {
  const cases: [TokenReview["status"], string][] = [
    [{ authenticated: false }, "the API server does not know it"],
    [{ error: "token has expired" }, "token has expired"],
    [undefined, "the API server does not know it"],
    [{ ...good(), audiences: [] }, "not meant for audience"],
    // An API server that knows nothing of audiences.
    [{ authenticated: true, user: { username: USER } }, "not meant for"],
    [{ ...good(), audiences: ["vault"] }, "not meant for audience"],
  ];
  for (const [status, words] of cases) {
    const { ask, outcomes } = setUp(status);
    const refusal = await ask();
    assertEquals(refusal?.code, StatusCode.UNAUTHENTICATED);
    assertStringIncludes(refusal!.message, words);
    assertStringIncludes(refusal!.message, "kube-system/konnectivity-agent");
    assertEquals(outcomes, ["invalid"]);
  }
});

Deno.test("a good token of somebody else is not permitted", async () => {
  for (
    const username of [
      "system:serviceaccount:default:konnectivity-agent",
      "system:serviceaccount:kube-system:other",
      "system:serviceaccount:kube-system:konnectivity-agent:x",
      "system:node:edge1",
      "kubernetes-admin",
      "",
    ]
  ) {
    const { ask, outcomes } = setUp({ ...good(), user: { username } });
    const refusal = await ask();
    assertEquals(refusal?.code, StatusCode.PERMISSION_DENIED, username);
    assertStringIncludes(refusal!.message, "wanted one of ServiceAccount");
    assertEquals(outcomes, ["denied"]);
  }
});

Deno.test("an API server that cannot be asked lets nobody in, and says so", async () => {
  const down = new KubernetesError(0, "", "Cannot POST: no answer");
  const { ask, outcomes, warnings } = setUp(down);
  assertEquals((await ask())?.code, StatusCode.UNAVAILABLE);
  assertEquals(outcomes, ["unavailable"]);
  assertStringIncludes(warnings[0]!, "no answer");
});

const NODE: KubernetesNode = {
  metadata: { name: "edge1" },
  status: {
    addresses: [
      { type: "InternalIP", address: "10.0.0.7" },
      { type: "Hostname", address: "edge1.example" },
    ],
  },
};

Deno.test("a bound token covers its node's name and addresses, and its Pod's name", async () => {
  for (
    const claim of [
      { agentId: "edge1", identifiers: "host=edge1" },
      { agentId: "agent-x7k2p" },
      { agentId: "edge1", identifiers: "ipv4=10.0.0.7&host=edge1.example" },
    ]
  ) {
    const { ask, outcomes } = setUp(boundTo("edge1"), "enforce", NODE);
    assertEquals(await ask(claim), undefined);
    assertEquals(outcomes, ["admitted"]);
  }
});

Deno.test("a bound token that is shown for another node is seen, or refused", async () => {
  for (
    const claim of [
      { agentId: "edge2" },
      { agentId: "edge1", identifiers: "host=edge2" },
      { agentId: "edge1", identifiers: "ipv4=10.0.0.8" },
      { agentId: "edge1", identifiers: "default-route=true" },
    ]
  ) {
    const enforcing = setUp(boundTo("edge1"), "enforce", NODE);
    const refusal = await enforcing.ask(claim);
    assertEquals(refusal?.code, StatusCode.PERMISSION_DENIED);
    assertStringIncludes(refusal!.message, 'bound to node "edge1"');
    const warning = setUp(boundTo("edge1"), "warn", NODE);
    assertEquals(await warning.ask(claim), undefined);
    assertEquals(await warning.ask(claim), undefined);
    assertEquals(warning.warnings.length, 1, "once per agent");
    assertEquals(warning.outcomes.includes("mismatched"), true);
  }
});

Deno.test("a Node that may not be read proves no address", async () => {
  const { ask, warnings } = setUp(boundTo("edge1"), "enforce");
  const claim = { agentId: "edge1", identifiers: "ipv4=10.0.0.7" };
  assertEquals((await ask(claim))?.code, StatusCode.PERMISSION_DENIED);
  assertStringIncludes(warnings[0]!, "its Node could not be read");
});

/** As `kubectl create token` and token Secrets give them: bound to nothing. */
const UNBOUND = good();

/** Of a Pod, from before Kubernetes 1.30. */
const OF_POD = good({
  "authentication.kubernetes.io/pod-name": ["agent-x7k2p"],
  "authentication.kubernetes.io/pod-uid": ["uid-1"],
});

const POD: Pod = {
  metadata: { name: "agent-x7k2p", uid: "uid-1" },
  spec: { nodeName: "edge1" },
};

const CLAIMS = [
  { agentId: "edge1" },
  { agentId: "edge1", identifiers: "host=edge1" },
  { agentId: "edge1", identifiers: "cidr=0.0.0.0/0&default-route=true" },
  { agentId: "anything", identifiers: "ipv4=10.0.0.7" },
  { agentId: "" },
];

Deno.test("a token of no Pod proves no claim: refused, or warned of once and counted", async () => {
  for (const claim of CLAIMS) {
    const enforcing = setUp(UNBOUND, "enforce", NODE, POD);
    const refusal = await enforcing.ask(claim);
    assertEquals(refusal?.code, StatusCode.PERMISSION_DENIED);
    assertStringIncludes(
      refusal!.message,
      `names no node, for it is bound to no Pod, and does not cover agent id ` +
        JSON.stringify(claim.agentId),
    );
    assertStringIncludes(refusal!.message, "or a certificate, or start");
    assertEquals(enforcing.asked, [], "there is no Pod to ask for");
    const warning = setUp(UNBOUND, "warn", NODE, POD);
    assertEquals(await warning.ask(claim), undefined);
    assertEquals(await warning.ask(claim), undefined);
    assertEquals(warning.warnings.length, 1, "once per agent");
    assertEquals(
      warning.outcomes.filter((one) => one === "mismatched").length,
      2,
    );
  }
});

Deno.test("a Pod's token without a node is good for where the Pod runs", async () => {
  const good = { agentId: "edge1", identifiers: "host=edge1&ipv4=10.0.0.7" };
  const { ask, asked } = setUp(OF_POD, "enforce", NODE, POD);
  assertEquals(await ask(good), undefined);
  assertEquals(await ask({ agentId: "agent-x7k2p" }), undefined);
  const refusal = await ask({ agentId: "edge2" });
  assertStringIncludes(refusal!.message, 'bound to node "edge1"');
  const pods = asked.filter((path) => path.includes("/pods/"));
  assertEquals(pods, ["/api/v1/namespaces/kube-system/pods/agent-x7k2p"]);
  // Another Pod bears the name by now, or it runs nowhere.
  for (
    const pod of [
      { ...POD, metadata: { ...POD.metadata, uid: "uid-2" } },
      { ...POD, spec: {} },
      { ...POD, spec: { nodeName: "" } },
    ]
  ) {
    const other = setUp(OF_POD, "enforce", NODE, pod);
    const refusal = await other.ask(good);
    assertStringIncludes(refusal!.message, 'Pod "agent-x7k2p", names no node');
    // Its own name is proven all the same.
    assertEquals(await other.ask({ agentId: "agent-x7k2p" }), undefined);
  }
});

Deno.test("a server that may not read Pods says so, and asks once a minute", async () => {
  const { ask, asked, warnings } = setUp(OF_POD, "enforce", NODE);
  for (const agentId of ["edge1", "edge2", "edge1"]) {
    const refusal = await ask({ agentId });
    assertStringIncludes(refusal!.message, "or let the server get pods");
  }
  assertEquals(asked.filter((path) => path.includes("/pods/")).length, 1);
  assertStringIncludes(warnings[0]!, "its Pod could not be read: no /api/v1");
});

const WANTED_TOKEN = {
  namespace: "kube-system",
  serviceAccount: "agent",
  audience: "tunnel",
};
const SUBJECT = "system:serviceaccount:kube-system:agent";
const NOW_MS = 1_800_000_000_000;

function flaw(token: string) {
  return flawOf(token, WANTED_TOKEN, NOW_MS);
}

Deno.test("a token that may be good has no flaw", () => {
  for (
    const claims of [
      { sub: SUBJECT, aud: ["tunnel"], exp: NOW_MS / 1_000 + 1 },
      { sub: SUBJECT, aud: ["other", "tunnel"] },
      { sub: SUBJECT, aud: "tunnel" },
      // Out of a Secret: no audience, and it never ends.
      { sub: SUBJECT, iss: "kubernetes/serviceaccount" },
      {
        sub: SUBJECT,
        aud: ["tunnel"],
        exp: (NOW_MS - TOKEN_CLOCK_SKEW_MS) / 1_000,
      },
      { sub: SUBJECT, aud: ["tunnel"], exp: "never" },
    ]
  ) assertEquals(flaw(tokenSaying(claims)), undefined);
});

Deno.test("a flaw of a token is seen without asking", () => {
  const good = tokenSaying({ sub: SUBJECT, aud: ["tunnel"] });
  const [head, payload, signature] = good.split(".");
  const none = "it is not a ServiceAccount's token";
  const nobody = "it names no ServiceAccount";
  const elsewhere = 'it is not meant for audience "tunnel"';
  const exp = (NOW_MS - TOKEN_CLOCK_SKEW_MS) / 1_000 - 1;
  // deno-fmt-ignore: a case is a line.
  const cases: readonly (readonly [token: string, why: string])[] = [
    ["", none],
    ["t", none],
    ["a.b.c", none],
    [`${head}.${payload}`, none],
    [`${head}.${payload}.`, none],
    [`.${payload}.${signature}`, none],
    [`${good}.more`, none],
    [`${payload}.${payload}.${signature}`, none],
    [`${head}.${btoa("[1]")}.${signature}`, none],
    [`${head}.${btoa("null")}.${signature}`, none],
    [`${head}.${btoa("{")}.${signature}`, none],
    [`${good}${"A".repeat(TOKEN_LENGTH_MAX)}`, none],
    [tokenSaying({}), nobody],
    [tokenSaying({ sub: 7 }), nobody],
    [tokenSaying({ sub: "system:node:edge" }), nobody],
    [tokenSaying({ sub: SUBJECT, aud: ["vault"] }), elsewhere],
    [tokenSaying({ sub: SUBJECT, aud: [] }), elsewhere],
    [tokenSaying({ sub: SUBJECT, aud: ["tunnel"], exp }), "it has expired"],
  ];
  for (const [token, why] of cases) {
    const wanted = { kind: "invalid", why } as const;
    assertEquals(flaw(token), wanted, token.slice(0, 200));
  }
});

Deno.test("whose it says it is decides, unproven, only against it", () => {
  const username = "system:serviceaccount:default:agent";
  const token = tokenSaying({ sub: username, aud: ["tunnel"] });
  assertEquals(flaw(token), { kind: "other-user", username });
});

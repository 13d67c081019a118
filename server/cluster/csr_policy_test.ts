import "reflect-metadata";
import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import { NODE_NAME } from "../../neighbours/kubernetes/token_review.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import { makeNamedRequest } from "../../platform/pki/named_request.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import { decideCsr } from "./csr_policy.ts";

type Spec = CertificateSigningRequest["spec"];

const keys = await generateKeyPair();

const AGENT = {
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: [] as string[],
};

const EDGE1: Partial<Spec> = {
  username: "system:node:edge1",
  groups: ["system:nodes", "system:authenticated"],
};

/** Node edge1 has one address; nobody else is known. */
const addresses = {
  of: (node: string) =>
    Promise.resolve({
      ...NO_IDENTIFIERS,
      ipv4: node === "edge1" ? ["10.0.0.7"] : [],
    }),
};

/** What is decided about a request; a plain agent's of edge1 but for `names`. */
async function decide(
  names: Partial<typeof AGENT> = {},
  spec: Partial<Spec> = {},
  serviceAccount?: string,
): Promise<string> {
  const request = btoa(await makeNamedRequest(keys, { ...AGENT, ...names }));
  const decision = await decideCsr({
    metadata: { name: "csr" },
    spec: {
      request,
      signerName: API_CLIENT_SIGNER,
      usages: CLIENT_USAGES,
      ...EDGE1,
      ...spec,
    },
  }, { addresses, ...serviceAccount === undefined ? {} : { serviceAccount } });
  return decision.kind === "approve"
    ? `approve ${decision.node}`
    : `${decision.kind}: ${decision.why}`;
}

Deno.test("a node may have a certificate for itself", async () => {
  assertEquals(await decide(), "approve edge1");
  const usages = CLIENT_USAGES.toReversed();
  assertEquals(await decide({}, { usages }), "approve edge1");
  const ipAddresses = ["10.0.0.7"];
  assertEquals(await decide({ ipAddresses }), "approve edge1");
});

Deno.test("nobody gets a certificate for a node that they are not", async () => {
  const impostors: Partial<Spec>[] = [
    { username: "system:node:edge2" },
    { username: "system:serviceaccount:default:anybody", groups: [] },
    { username: "tunnel-agent-client", groups: ["openyurt:yurttunnel"] },
    { username: "kubernetes-admin", groups: ["system:masters"] },
    // A certificate that was issued with that name, but for no node.
    { username: "system:node:edge1", groups: ["system:authenticated"] },
    { username: "", groups: ["system:nodes"] },
    { username: "xsystem:node:edge1" },
  ];
  for (const spec of impostors) {
    assertStringIncludes(await decide({}, spec), "deny: ", spec.username!);
  }
  assertEquals(
    await decide({}, { username: "system:node:edge2" }),
    'deny: it comes from node "edge2" and asks for names ["edge1"]',
  );
});

Deno.test("a node gets no other names beside its own", async () => {
  const requested = [
    { dnsNames: ["edge1", "edge2"] },
    { dnsNames: [] },
    { dnsNames: ["edge1."] },
    { organizations: ["openyurt:yurttunnel", "system:masters"] },
    { organizations: ["system:masters"] },
    { organizations: [] },
  ];
  for (const names of requested) {
    assertStringIncludes(await decide(names), "deny: ", JSON.stringify(names));
  }
});

Deno.test("an address that its node has not got is waited for", async () => {
  const requested = [["10.0.0.8"], ["10.0.0.7", "10.0.0.8"], ["127.0.0.1"]];
  for (const ipAddresses of requested) {
    assertStringIncludes(
      await decide({ ipAddresses }),
      'is no address of node "edge1"',
    );
    assertStringIncludes(await decide({ ipAddresses }), "wait: ");
  }
});

Deno.test("the server's own certificate is left to administrators", async () => {
  const names = { commonName: "tunnel-proxy-client", dnsNames: [] };
  const anybody = { username: "system:serviceaccount:default:anybody" };
  for (const spec of [EDGE1, anybody]) {
    assertEquals(
      await decide(names, spec),
      'ignore: it is for "tunnel-proxy-client"',
    );
  }
});

Deno.test("a machine that is no node yet is left to administrators", async () => {
  const groups = ["system:bootstrappers", "system:authenticated"];
  const spec = { username: "system:bootstrap:abcdef", groups };
  assertStringIncludes(await decide({}, spec), "ignore: a bootstrap token");
});

Deno.test("a certificate for more than calling is denied", async () => {
  for (
    const usages of [
      [...CLIENT_USAGES, "server auth"],
      ["digital signature", "client auth"],
      ["any"],
      ["client auth", "client auth", "client auth"],
      [],
    ]
  ) {
    assertStringIncludes(await decide({}, { usages }), "deny: its usages");
  }
});

Deno.test("a bound token is as good as its node, if it is of the named ServiceAccount", async () => {
  const spec = {
    username: "system:serviceaccount:kube-system:agent",
    groups: ["system:serviceaccounts"],
    extra: { [NODE_NAME]: ["edge1"] },
  };
  const of = (changed: Partial<Spec>, account?: string) =>
    decide({}, { ...spec, ...changed }, account);
  assertEquals(await of({}, "kube-system/agent"), "approve edge1");
  const denied = [
    await of({}),
    await of({}, "kube-system/other"),
    await of({}, "kube-system:agent/x"),
    await of({ extra: {} }, "kube-system/agent"),
    await of({ extra: { [NODE_NAME]: ["edge2"] } }, "kube-system/agent"),
    await of({ extra: { [NODE_NAME]: ["edge1", "x"] } }, "kube-system/agent"),
  ];
  for (const decision of denied) assertStringIncludes(decision, "deny: ");
});

Deno.test("requests of others, and those that make no sense, are left alone", async () => {
  const others = [
    await decide({ commonName: "somebody" }),
    await decide({}, { signerName: "kubernetes.io/kubelet-serving" }),
    await decide({}, { request: "%" }),
    await decide({}, { request: btoa("nothing") }),
    await decide({}, { request: "A".repeat(100_000) }),
  ];
  for (const decision of others) assertStringIncludes(decision, "ignore: ");
});

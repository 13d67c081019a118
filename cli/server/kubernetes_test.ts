import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "../flags/usage_error.ts";
import { serverKubernetes } from "./kubernetes.ts";
import { readFlags } from "../flags/read_flags.ts";
import { SERVER_FLAGS } from "./flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

function sources(argv: readonly string[]) {
  return words(argv);
}

function server(...argv: string[]) {
  const { values } = readFlags("server", SERVER_FLAGS, sources(argv));
  return serverKubernetes(values, "server-1");
}

const TOKENS = [
  "--agent-namespace=kube-system",
  "--agent-service-account=konnectivity-agent",
  "--authentication-audience=system:konnectivity-server",
];

Deno.test("an API server is asked only when something needs it", () => {
  assertEquals(server("--kubeconfig=k"), undefined);
});

Deno.test("tokens need all three flags, and exclude other ways in", () => {
  assertEquals(server(...TOKENS, "--kubeconfig=k"), {
    kubeconfig: "k",
    rate: { perSecond: 100, burst: 200 },
    agentTokens: {
      namespace: "kube-system",
      serviceAccount: "konnectivity-agent",
      audience: "system:konnectivity-server",
    },
  });
  assertThrows(
    () => server(...TOKENS.slice(1)),
    UsageError,
    "without --agent-namespace",
  );
  assertThrows(
    () => server(...TOKENS, "--cluster-ca-cert=ca"),
    UsageError,
    "Cannot use --cluster-ca-cert together with --agent-namespace",
  );
  assertThrows(
    () => server(...TOKENS, "--allow-anonymous-agents"),
    UsageError,
    "no agent would have to show a token",
  );
});

Deno.test("a lease has labels and a name that the API takes", () => {
  const lease = ["--enable-lease-controller", "--lease-namespace=edge"];
  assertEquals(server(...lease, "--lease-label=a/b=c,d=")?.lease, {
    namespace: "edge",
    labels: { "a/b": "c", d: "" },
  });
  for (const label of ["a", "a=b=c", "a b=c", "a=b,a=c", "=b", "a=b,"]) {
    assertThrows(
      () => server(...lease, `--lease-label=${label}`),
      UsageError,
      "Cannot use --lease-label",
    );
  }
  const { values } = readFlags("server", SERVER_FLAGS, sources(lease));
  assertThrows(
    () => serverKubernetes(values, "Server_1"),
    UsageError,
    "change --server-id",
  );
});

Deno.test("rates are what was given, or more than enough", () => {
  const rate = (...argv: string[]) => server(...TOKENS, ...argv)?.rate;
  assertEquals(rate("--kubeconfig-qps=2.5"), { perSecond: 2.5, burst: 5 });
  assertEquals(rate("--kubeconfig-burst=7"), { perSecond: 100, burst: 7 });
});

Deno.test("another encoding is accepted, and said to have no effect", () => {
  const argv = ["--kube-api-content-type=application/json"];
  const { notices } = readFlags("server", SERVER_FLAGS, sources(argv));
  assertEquals(notices, [
    "--kube-api-content-type has no effect: the API server is spoken to in JSON",
  ]);
});

Deno.test("approving is asked for, and its ServiceAccount is one", () => {
  const rate = { perSecond: 100, burst: 200 };
  assertEquals(server("--csr-approver"), { rate, csrApprover: {} });
  const account = "--csr-approver-service-account=kube-system/agent";
  assertEquals(server("--csr-approver", account), {
    rate,
    csrApprover: { serviceAccount: "kube-system/agent" },
  });
  assertThrows(() => server(account), UsageError, "without --csr-approver");
  for (const wrong of ["agent", "kube-system/", "a/b/c", "a:b/c"]) {
    assertThrows(
      () => server("--csr-approver", `--csr-approver-service-account=${wrong}`),
      UsageError,
      "wanted NAMESPACE/NAME",
    );
  }
});

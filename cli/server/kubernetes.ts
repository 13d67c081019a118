/**
 * Flags of `tunnel server` about a Kubernetes API server, with Konnectivity's
 * names and its rules of combination.
 *
 * @module
 */

import { leaseName, parseLabels } from "../../neighbours/kubernetes/paths.ts";
import type {
  KubernetesServerOptions,
  TokenRequirement,
} from "../../server/options.ts";
import { unusable, UsageError } from "../flags/usage_error.ts";
import { flag, type FlagValues, inGroup } from "../flags/flag.ts";
import {
  kubeconfigOf,
  KUBERNETES,
  KUBERNETES_FLAGS,
  PROFILING_FLAGS,
} from "../flags/program_flags.ts";
import { given } from "../../platform/documents/given.ts";

const KUBE_FLAGS = inGroup(KUBERNETES, {
  "agent-namespace": flag.word("NAMESPACE", {
    help: "Admit agents that show a token of a ServiceAccount in this " +
      "namespace. Goes with the next two flags, and without " +
      "--cluster-ca-cert.",
  }),
  "agent-service-account": flag.word("NAME", "Name of that ServiceAccount."),
  "authentication-audience": flag.word("AUDIENCE", {
    help: "Audience that those tokens must name.",
  }),
  ...KUBERNETES_FLAGS,
  "kubeconfig-qps": flag.number(0, {
    help: "Requests per second to the API server; 0: 100. Konnectivity: 5.",
  }),
  "kubeconfig-burst": flag.count(0, 0, 1_000_000, {
    help: "Requests to the API server at once; 0: twice --kubeconfig-qps. " +
      "Konnectivity: 10.",
  }),
  "enable-lease-controller": flag.boolean(false, {
    help: "Publish this server's lease and remove expired ones, so that " +
      "agents can count servers.",
  }),
  "lease-label": flag.text("k8s-app=konnectivity-server", {
    placeholder: "LABELS",
    help: "Labels of servers' leases.",
  }),
  "csr-approver": flag.boolean(false, {
    help: "Approve agents' CertificateSigningRequests in which a node asks " +
      "for a certificate for itself.",
  }),
  "csr-approver-service-account": flag.word("NAMESPACE/NAME", {
    help: "Also approve those of this ServiceAccount whose token is bound " +
      "to the node.",
    defaultText: "nodes' own identities only",
  }),
});

/** In the order in which the help shows them. */
export const SERVER_KUBERNETES_FLAGS = {
  ...KUBE_FLAGS,
  ...PROFILING_FLAGS,
} as const;

type ServerValues = FlagValues<typeof SERVER_KUBERNETES_FLAGS>;

/** Requests per second by default: many agents may come at once. */
const DEFAULT_QPS = 100;

/** A name of an object: RFC 1123's subdomains, as the API has it. */
const OBJECT_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

/**
 * A server's tasks with an API server; absent: none.
 *
 * @throws {UsageError} One line.
 */
export function serverKubernetes(
  flags: ServerValues & {
    readonly "cluster-ca-cert": string;
    readonly "allow-anonymous-agents": boolean;
  },
  serverId: string,
): KubernetesServerOptions | undefined {
  const agentTokens = tokenRequirement(flags);
  const lease = flags["enable-lease-controller"]
    ? { namespace: flags["lease-namespace"], labels: labelsOf(flags) }
    : undefined;
  const csrApprover = approverOf(flags);
  const isNeeded = agentTokens ?? lease ?? csrApprover;
  if (isNeeded === undefined) return undefined;
  if (lease !== undefined && !OBJECT_NAME.test(leaseName(serverId))) {
    throw new UsageError(
      `Cannot use --enable-lease-controller: the server's id "${serverId}" ` +
        "cannot be a part of a lease's name, wanted lower-case letters, " +
        "digits, - and .; change --server-id",
    );
  }
  const perSecond = flags["kubeconfig-qps"] || DEFAULT_QPS;
  const burst = flags["kubeconfig-burst"] || Math.ceil(2 * perSecond);
  const rate = { perSecond, burst };
  return given({
    ...kubeconfigOf(flags),
    ...{ rate, agentTokens, lease, csrApprover },
  });
}

function approverOf(
  flags: ServerValues,
): KubernetesServerOptions["csrApprover"] {
  const serviceAccount = flags["csr-approver-service-account"];
  if (serviceAccount === "") return flags["csr-approver"] ? {} : undefined;
  const [namespace, name, ...rest] = serviceAccount.split("/");
  const isGood = OBJECT_NAME.test(namespace!) && OBJECT_NAME.test(name ?? "") &&
    rest.length === 0;
  if (!isGood) {
    throw unusable(
      "--csr-approver-service-account",
      serviceAccount,
      "NAMESPACE/NAME",
    );
  }
  if (flags["csr-approver"]) return { serviceAccount };
  throw new UsageError(
    "Cannot use --csr-approver-service-account alone: nothing is approved " +
      "without --csr-approver; give both",
  );
}

function tokenRequirement(
  flags: Parameters<typeof serverKubernetes>[0],
): TokenRequirement | undefined {
  const names = [
    "agent-namespace",
    "agent-service-account",
    "authentication-audience",
  ] as const;
  const lacking = names.filter((name) => flags[name] === "");
  if (lacking.length === names.length) return undefined;
  if (flags["cluster-ca-cert"] !== "") {
    const given = names.find((name) => flags[name] !== "");
    throw new UsageError(
      `Cannot use --cluster-ca-cert together with --${given}: agents show ` +
        "either certificates of that CA or tokens; keep one of them",
    );
  }
  if (lacking.length > 0) {
    throw new UsageError(
      `Cannot check agents' tokens without --${lacking.join(" and --")}: a ` +
        "token is of one ServiceAccount and for one audience; give all three",
    );
  }
  if (flags["allow-anonymous-agents"]) {
    throw new UsageError(
      "Cannot use --allow-anonymous-agents together with --agent-namespace: " +
        "no agent would have to show a token; remove one of them",
    );
  }
  return {
    namespace: flags["agent-namespace"],
    serviceAccount: flags["agent-service-account"],
    audience: flags["authentication-audience"],
  };
}

function labelsOf(flags: ServerValues): Readonly<Record<string, string>> {
  const labels = parseLabels(flags["lease-label"]);
  if (labels !== undefined) return labels;
  throw unusable(
    "--lease-label",
    flags["lease-label"],
    "labels such as k8s-app=konnectivity-server, separated by commas",
  );
}

/**
 * Flags about a Kubernetes API server: Konnectivity's, under its names. Those
 * for profiles are here too; of the one for Go's locks the default is accepted,
 * since supervisors and test suites pass every flag, and any other is refused.
 *
 * @module
 */

import {
  booleanFlag,
  choiceFlag,
  countFlag,
  fileFlag,
  numberFlag,
  textFlag,
} from "./flag.ts";

const KUBERNETES = "Kubernetes";

/** What both server and agent have. */
const COMMON_FLAGS = {
  "kubeconfig": fileFlag({
    group: KUBERNETES,
    help: "How to reach the API server, when something here needs it.",
    defaultText: "as a Pod does",
  }),
  "kube-api-content-type": textFlag("application/vnd.kubernetes.protobuf", {
    group: KUBERNETES,
    help: "Encoding towards the API server; JSON is used whatever it says.",
    status: { kind: "idle", because: "the API server is spoken to in JSON" },
  }),
  "lease-namespace": textFlag("kube-system", {
    group: KUBERNETES,
    placeholder: "NAMESPACE",
    help: "Where servers' leases are.",
  }),
} as const;

const PROFILING_FLAGS = {
  "enable-profiling": booleanFlag(false, {
    group: "Health, admin, shutdown",
    help: "A CPU profile and a heap snapshot at /debug/pprof on the admin " +
      "port, in V8's formats, for whoever reaches that port.",
  }),
  "enable-contention-profiling": booleanFlag(false, {
    group: "Konnectivity's, not built yet (default only)",
    help: "Lock contention in pprof.",
    status: {
      kind: "missing",
      because: "there are no locks in this program to wait for",
    },
  }),
} as const;

/** Of `tunnel server`. */
export const SERVER_KUBERNETES_FLAGS = {
  "agent-namespace": textFlag("", {
    group: KUBERNETES,
    placeholder: "NAMESPACE",
    help: "Let agents in that show a token of a ServiceAccount in it. Goes " +
      "with the next two, and without --cluster-ca-cert.",
  }),
  "agent-service-account": textFlag("", {
    group: KUBERNETES,
    placeholder: "NAME",
    help: "That ServiceAccount.",
  }),
  "authentication-audience": textFlag("", {
    group: KUBERNETES,
    placeholder: "AUDIENCE",
    help: "Whom those tokens must be meant for.",
  }),
  ...COMMON_FLAGS,
  "kubeconfig-qps": numberFlag(0, {
    group: KUBERNETES,
    help: "Requests per second to the API server; 0: 100. Konnectivity: 5.",
  }),
  "kubeconfig-burst": countFlag(0, 0, 1_000_000, {
    group: KUBERNETES,
    help: "Requests at once; 0: twice as many. Konnectivity: 10.",
  }),
  "enable-lease-controller": booleanFlag(false, {
    group: KUBERNETES,
    help: "Publish this server's lease, and remove those that expired, so " +
      "that agents can count servers.",
  }),
  "lease-label": textFlag("k8s-app=konnectivity-server", {
    group: KUBERNETES,
    placeholder: "LABELS",
    help: "Labels of servers' leases.",
  }),
  "csr-approver": booleanFlag(false, {
    group: KUBERNETES,
    help: "Approve agents' CertificateSigningRequests: those in which a node " +
      "asks for a certificate for itself.",
  }),
  "csr-approver-service-account": textFlag("", {
    group: KUBERNETES,
    placeholder: "NAMESPACE/NAME",
    help: "And those of this ServiceAccount, whose token is bound to the node.",
    defaultText: "nodes' own identities only",
  }),
  ...PROFILING_FLAGS,
} as const;

/** Of `tunnel agent`. */
export const AGENT_KUBERNETES_FLAGS = {
  "service-account-token-path": fileFlag({
    group: KUBERNETES,
    help: "Show the server the token in this file. It is read for each link.",
  }),
  "count-server-leases": booleanFlag(false, {
    group: KUBERNETES,
    help: "Learn from their leases how many servers there are.",
  }),
  "server-count-source": choiceFlag(["default", "max", ""], "default", {
    group: KUBERNETES,
    help: "With leases: default counts leases only, max believes the larger " +
      "of their number and what servers say.",
  }),
  ...COMMON_FLAGS,
  "lease-label-selector": textFlag("k8s-app=konnectivity-server", {
    group: KUBERNETES,
    aliases: ["lease-label"],
    placeholder: "SELECTOR",
    help: "Which leases are servers'.",
  }),
  ...PROFILING_FLAGS,
} as const;

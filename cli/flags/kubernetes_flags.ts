/**
 * Flags of Konnectivity that need a Kubernetes client or Go's profiler, which
 * this version has not got. Their defaults are accepted, because supervisors
 * and test suites pass every flag; any other value is refused.
 *
 * @module
 */

import {
  booleanFlag,
  fileFlag,
  type Flag,
  type FlagDetails,
  textFlag,
} from "./flag.ts";

/** Heading for all of them. */
export const MISSING_GROUP = "Konnectivity's, not built yet (default only)";

const NO_CLIENT = "this version cannot talk to a Kubernetes API server yet";
const NO_LEASES = "server leases are not built yet";
const NO_PROFILER = "profiling endpoints are not built yet";

/** Details of a flag whose function does not exist yet. */
export function missing(
  help: string,
  because: "client" | "leases" | "profiler",
): FlagDetails {
  const reasons = {
    client: NO_CLIENT,
    leases: NO_LEASES,
    profiler: NO_PROFILER,
  };
  return {
    group: MISSING_GROUP,
    help,
    status: { kind: "missing", because: reasons[because] },
  };
}

/** What both server and agent have. */
export const KUBERNETES_FLAGS = {
  "kubeconfig": fileFlag(missing("Kubernetes client configuration.", "client")),
  "kube-api-content-type": textFlag(
    "application/vnd.kubernetes.protobuf",
    missing("Encoding towards the Kubernetes API.", "client"),
  ),
  "lease-namespace": textFlag(
    "kube-system",
    missing("Namespace of server leases.", "leases"),
  ),
  "lease-label": textFlag(
    "k8s-app=konnectivity-server",
    missing("Label of server leases.", "leases"),
  ),
  "enable-profiling": profiling("pprof on the admin port."),
  "enable-contention-profiling": profiling("Lock contention in pprof."),
} as const;

function profiling(help: string): Flag<boolean> {
  return booleanFlag(false, missing(help, "profiler"));
}

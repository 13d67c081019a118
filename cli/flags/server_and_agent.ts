/**
 * Flags that server and agent have alike: the largest message, a
 * Kubernetes API server and profiles. Konnectivity's have its names.
 *
 * @module
 */

import { CONTENT_TYPE_FLAG, CONTENTION_FLAG } from "./idle_flags.ts";
import {
  booleanFlag,
  bytesFlag,
  fileFlag,
  type Flag,
  inGroup,
  textFlag,
} from "./flag.ts";

/** Where a server answers questions about itself by default. */
export const SERVER_ADMIN_PORT = 8095;

/**
 * Go's gRPC refuses more than 4 MiB and drops the whole agent with it; its
 * `Write` does not split either, so a client may well send 5 MiB at once.
 */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Below this not even Konnectivity's own 4 KiB reads and their heads fit. */
const LEAST = 64 * 1024;

/** Above this one peer could take the process's memory with one message. */
const MOST = 256 * 1024 * 1024;

export const MESSAGE_SIZE_FLAG: Flag<number> = bytesFlag(
  MESSAGE_BYTES_MAX,
  LEAST,
  MOST,
  { help: "Largest single message that a peer may send. Konnectivity: 4MiB." },
);

/** The heading of flags about an API server. */
export const KUBERNETES = "Kubernetes";

/** How the API server is reached, and where servers publish themselves. */
export const KUBERNETES_FLAGS = inGroup(KUBERNETES, {
  "kubeconfig": fileFlag({
    help: "How to reach the API server, where it is needed.",
    defaultText: "in-cluster",
  }),
  ...CONTENT_TYPE_FLAG,
  "lease-namespace": textFlag("kube-system", {
    placeholder: "NAMESPACE",
    help: "Namespace of the servers' leases.",
  }),
});

/** Profiles on the admin port. */
export const PROFILING_FLAGS = inGroup("Health, admin, shutdown", {
  "enable-profiling": booleanFlag(false, {
    help: "Serve a CPU profile and a heap snapshot at /debug/pprof on the " +
      "admin port, in V8's formats, to whoever reaches that port.",
  }),
  ...CONTENTION_FLAG,
});

/** The file of `--kubeconfig`; absent: as a Pod does. */
export function kubeconfigOf(
  flags: { readonly kubeconfig: string },
): { readonly kubeconfig?: string } {
  const { kubeconfig } = flags;
  return kubeconfig === "" ? {} : { kubeconfig };
}

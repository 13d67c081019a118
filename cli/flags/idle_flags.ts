/**
 * All flags that are accepted without effect, or refused because their function
 * is not built: manifests and test suites of other programs use them. Each has
 * its reason.
 *
 * The klog flags come with every Kubernetes program. The supervisor of a
 * container does their work (log files, stack traces, stderr) anyway. Of Go's
 * locks the default is accepted, since supervisors pass every flag.
 *
 * @module
 */

import { type Flag, flag, type FlagDetails } from "./flag.ts";

/** The default or its maker; the help; the reason for having no effect. */
type IdleRow = readonly [
  fallback: boolean | string | ((details: FlagDetails) => Flag<unknown>),
  help: string,
  because: string,
];

function idle<Name extends string>(
  group: string,
  rows: Readonly<Record<Name, IdleRow>>,
): Readonly<Record<Name, Flag<unknown>>> {
  const flags = Object.entries<IdleRow>(rows)
    .map(([name, [fallback, help, because]]) => {
      const status = { kind: "idle", because } as const;
      const details = { group, help, status };
      if (typeof fallback === "function") return [name, fallback(details)];
      return typeof fallback === "boolean"
        ? [name, flag.boolean(fallback, details)]
        : [name, flag.text(fallback, details)];
    });
  return Object.fromEntries(flags);
}

const KLOG = "everything is logged to stderr";

/** All of klog v2 but `--v`, and what Kubernetes adds to it. */
export const KLOG_FLAGS = idle("Accepted for klog's sake (no effect)", {
  "add-dir-header": [false, "Directory in the log header.", KLOG],
  "alsologtostderr": [false, "Log to stderr as well.", KLOG],
  "alsologtostderrthreshold": ["", "Severity from which on that is so.", KLOG],
  "legacy-stderr-threshold-behavior": [
    true,
    "How the threshold combines with stderr.",
    KLOG,
  ],
  "log-backtrace-at": ["", "Stack trace at file:line.", KLOG],
  "log-dir": ["", "Directory of log files.", KLOG],
  "log-file": ["", "Log file.", KLOG],
  "log-file-max-size": [
    (details) => flag.count(1800, 0, Number.MAX_SAFE_INTEGER, details),
    "Megabytes per log file.",
    KLOG,
  ],
  "log-flush-frequency": [
    (details) => flag.duration(5_000, 0, details),
    "Time between two flushes of log files.",
    KLOG,
  ],
  "logtostderr": [true, "Log to stderr instead of files.", KLOG],
  "one-output": [false, "One severity per file.", KLOG],
  "skip-headers": [false, "No log header.", KLOG],
  "skip-log-headers": [false, "No header in log files.", KLOG],
  "stderrthreshold": ["", "Severity that goes to stderr.", KLOG],
  "vmodule": ["", "Level per file.", KLOG],
});

const KONNECTIVITY = "Accepted for Konnectivity's sake (no effect)";

const IN_BYTES = "queues are bounded in bytes";

/** Flags of Konnectivity's proxy-server. */
export const SERVER_IDLE_FLAGS = idle(KONNECTIVITY, {
  "xfr-channel-size": [
    (details) => flag.count(10, 1, 1_000_000, details),
    "Packets per receive channel.",
    IN_BYTES,
  ],
  "warn-on-channel-limit": [
    true,
    "Deprecated by Konnectivity too.",
    "it is deprecated",
  ],
});

/** Flags of Konnectivity's proxy-agent. */
export const AGENT_IDLE_FLAGS = idle(KONNECTIVITY, {
  "probe-interval": [
    (details) => flag.duration(1000, 1, details),
    "Time between two checks whether a link is up.",
    "a lost link is noticed at once",
  ],
  "xfr-channel-size": [
    (details) => flag.count(150, 1, 1_000_000, details),
    "Packets per connection and direction.",
    IN_BYTES,
  ],
  "warn-on-channel-limit": [false, "Log when a channel is full.", IN_BYTES],
});

/** Flags of both, beside those with an effect. */
export const CONTENT_TYPE_FLAG = idle("Kubernetes", {
  "kube-api-content-type": [
    "application/vnd.kubernetes.protobuf",
    "Encoding towards the API server; JSON is always used.",
    "the API server is spoken to in JSON",
  ],
});

/** The same, about Go's locks. */
export const CONTENTION_FLAG = idle("Health, admin, shutdown", {
  "enable-contention-profiling": [
    false,
    "Lock contention in pprof.",
    "there are no locks in this program to wait for",
  ],
});

/** Flags of kube-proxy 0.4, about the API server of `--master`. */
export const MASTER_IDLE_FLAGS = {
  "api-version": flag.choice(["v1beta1", "v1beta2", "v1", ""], "", {
    help: "Version of its API; v1 is always used.",
    defaultText: "v1",
    status: { kind: "idle", because: "the API server is spoken to in v1" },
  }),
  "insecure-skip-tls-verify": flag.boolean(false, {
    help: "Refused when true: any server at that address would decide " +
      "where services lead.",
    status: {
      kind: "missing",
      because: "any server at that address would be believed, give " +
        "--certificate-authority in its place",
    },
  }),
} as const;

/**
 * Flags that every command of this program has: help, config file, log.
 *
 * The klog flags come with every Kubernetes program, so manifests carry them.
 * What they arrange (log files, stack traces, stderr) is what the supervisor of
 * a container does anyway; they are accepted and change nothing.
 *
 * @module
 */

import {
  booleanFlag,
  choiceFlag,
  countFlag,
  durationFlag,
  fileFlag,
  type Flag,
  textFlag,
} from "./flag.ts";

const GROUP = "Logging";
const KLOG_GROUP = "Accepted for klog's sake (no effect)";
const GENERAL_GROUP = "General";

/** `--help` and `--config`. */
export const GENERAL_FLAGS = {
  "help": booleanFlag(false, {
    isCommon: true,
    group: GENERAL_GROUP,
    short: "h",
    help: "Show this text.",
  }),
  "config": fileFlag({
    once: true,
    isCommon: true,
    group: GENERAL_GROUP,
    holdsFlags: true,
    help: "Read flags from this .json or .yaml file: one map, with the same " +
      "names. The command line and TUNNEL_* variables win over it.",
  }),
} as const;

/** Level and form of the log. */
export const LOG_FLAGS = {
  "v": countFlag(2, 0, 10, {
    isCommon: true,
    group: GROUP,
    help: "Level of the log: 0 problems, 1 start and stop, 2 links, " +
      "refusals and failed connections, 4 every connection, 6 stacks of " +
      "failures, 10 every packet. Konnectivity: 4.",
    placeholder: "LEVEL",
  }),
  "log-format": choiceFlag(["text", "json"], "text", {
    isCommon: true,
    group: GROUP,
    help: "Form of the log, one line per event: for people or for machines.",
  }),
} as const;

const idle = {
  kind: "idle",
  because: "everything is logged to stderr",
} as const;

function klogText(help: string): Flag<string> {
  return textFlag("", { group: KLOG_GROUP, help, status: idle });
}

function klogBoolean(fallback: boolean, help: string): Flag<boolean> {
  return booleanFlag(fallback, { group: KLOG_GROUP, help, status: idle });
}

/** All of klog v2 but `--v`, and what Kubernetes adds to it. */
export const KLOG_FLAGS = {
  "add-dir-header": klogBoolean(false, "Directory in the log header."),
  "alsologtostderr": klogBoolean(false, "Log to stderr as well."),
  "alsologtostderrthreshold": klogText("Severity from which on that is so."),
  "legacy-stderr-threshold-behavior": klogBoolean(
    true,
    "How the threshold combines with stderr.",
  ),
  "log-backtrace-at": klogText("Stack trace at file:line."),
  "log-dir": klogText("Directory of log files."),
  "log-file": klogText("Log file."),
  "log-file-max-size": countFlag(1800, 0, Number.MAX_SAFE_INTEGER, {
    group: KLOG_GROUP,
    help: "Megabytes per log file.",
    status: idle,
  }),
  "log-flush-frequency": durationFlag(5_000, 0, {
    group: KLOG_GROUP,
    help: "Time between two flushes of log files.",
    status: idle,
  }),
  "logtostderr": klogBoolean(true, "Log to stderr instead of files."),
  "one-output": klogBoolean(false, "One severity per file."),
  "skip-headers": klogBoolean(false, "No log header."),
  "skip-log-headers": klogBoolean(false, "No header in log files."),
  "stderrthreshold": klogText("Severity that goes to stderr."),
  "vmodule": klogText("Level per file."),
} as const;

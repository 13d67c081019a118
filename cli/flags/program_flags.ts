/**
 * Flags that programs and commands have alike: help, config file, log and form
 * of the output; for server and agent the largest message, Kubernetes and
 * profiles; for long-running programs the admin socket, workers, and the
 * takeover by a new process.
 *
 * @module
 */

import {
  common,
  type Flag,
  flag,
  FlagValueError,
  type FlagValues,
  inGroup,
} from "./flag.ts";
import { CONTENT_TYPE_FLAG, CONTENTION_FLAG } from "./idle_flags.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import type { AdminAccess } from "../../net/listen/admin_port.ts";
import { UsageError } from "./usage_error.ts";
import { given } from "../../platform/documents/given.ts";
import { WORKERS_MAX } from "../../admin/ask/worker_sockets.ts";
import { parseWholeNumber } from "./go_values.ts";

/** `--help` and `--config`. */
export const GENERAL_FLAGS = inGroup("General", {
  "help": common(flag.boolean(false, { short: "h", help: "Show this text." })),
  "config": common(flag.file({
    once: true,
    holdsFlags: true,
    help: "Read flags from this .json or .yaml file: one map, with the same " +
      "names. The command line and TUNNEL_* variables win over it.",
  })),
});

/** Level and form of the log. */
export const LOG_FLAGS = inGroup("Logging", {
  "v": common(flag.count(2, 0, 10, {
    help: "Level of the log: 0 problems, 1 start and stop, 2 links, " +
      "refusals and failed connections, 4 every connection, 6 stacks of " +
      "failures, 10 every packet. Konnectivity: 4.",
    placeholder: "LEVEL",
  })),
  "log-format": common(flag.choice(["text", "json"], "text", {
    help: "Form of the log, one line per event: for people or for machines.",
  })),
});

/** A shorter way to write `--output json`. */
export const JSON_FLAG: { readonly json: Flag<boolean> } = {
  "json": flag.boolean(false, {
    help: "The same as --output json.",
    means: { flag: "output", value: "json" },
  }),
};

/** The output form of commands that ask no running program. */
export const FORM_FLAG = {
  "output": flag.choice(["text", "json"], "text", {
    short: "o",
    help: "For people or for programs.",
  }),
} as const;

/** The default address at which a server answers questions about itself. */
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

export const MESSAGE_SIZE_FLAG: Flag<number> = flag.bytes(
  MESSAGE_BYTES_MAX,
  LEAST,
  MOST,
  { help: "Largest single message that a peer may send. Konnectivity: 4MiB." },
);

/** The heading of flags about an API server. */
export const KUBERNETES = "Kubernetes";

/** How the API server is reached, and where servers publish themselves. */
export const KUBERNETES_FLAGS = inGroup(KUBERNETES, {
  "kubeconfig": flag.file({
    help: "Kubeconfig file for the API server, if one is needed.",
    defaultText: "in-cluster",
  }),
  ...CONTENT_TYPE_FLAG,
  "lease-namespace": flag.text("kube-system", {
    placeholder: "NAMESPACE",
    help: "Namespace of the servers' leases.",
  }),
});

/** Profiles on the admin port. */
export const PROFILING_FLAGS = inGroup("Health, admin, shutdown", {
  "enable-profiling": flag.boolean(false, {
    help: "Serve a CPU profile and a heap snapshot at /debug/pprof on the " +
      "admin port, in V8's formats, to every client of that port.",
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

const GROUP = "Health, admin, shutdown";

/** No socket at all. */
export const NO_SOCKET = "none";

/** For servers, agents and proxies. */
export const ADMIN_ACCESS_FLAGS = inGroup(GROUP, {
  "admin-socket": flag.word("PATH", {
    help:
      "Unix socket of the admin API (docs/observability.md), for this user and " +
      "root; none: there is no socket.",
    defaultText: "admin.sock in --state-dir",
  }),
  "admin-socket-group": flag.word("GROUP", {
    help: "Users of this group may ask by that socket, too, and change " +
      "nothing: a name or a number.",
  }),
});

/**
 * @param stateDirectory Where tokens are, and the socket unless one is named.
 * @throws {UsageError} One line.
 */
export function adminAccess(
  values: FlagValues<typeof ADMIN_ACCESS_FLAGS>,
  stateDirectory?: string,
): AdminAccess {
  const path = values["admin-socket"];
  const group = values["admin-socket-group"];
  if (path === NO_SOCKET && group !== "") {
    throw new UsageError(
      "Cannot use --admin-socket-group without a socket: remove it, or " +
        "--admin-socket=none",
    );
  }
  return given({
    stateDirectory,
    socket: path === NO_SOCKET ? "" : path || undefined,
    socketGroup: group === "" ? undefined : groupId(group),
  });
}

const GROUP_FILE = "/etc/group";

/** @throws {UsageError} There is none of that name. */
function groupId(group: string): number {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  let text: string;
  try {
    text = Deno.readTextFileSync(GROUP_FILE);
  } catch (error) {
    throw new UsageError(
      `Cannot use --admin-socket-group ${group}: ${messageOf(error)}; give ` +
        "its number",
    );
  }
  const found = text.split("\n").map((line) => line.split(":"))
    .find(([name]) => name === group);
  if (found !== undefined) return Number(found[2]);
  throw new UsageError(
    `Cannot use --admin-socket-group: there is no group "${group}" in ` +
      `${GROUP_FILE}; give its name there, or its number`,
  );
}

/** Any number will do. */
const SOME_GROUP = "0";

/** For a check on another machine, where names of groups cannot be resolved. */
export function withSomeGroup<
  Values extends { readonly "admin-socket-group": string },
>(values: Values): Values {
  const group = values["admin-socket-group"] === "" ? "" : SOME_GROUP;
  return { ...values, "admin-socket-group": group };
}

/** Used in place of an address: no process may request sockets. */
export const NO_HANDOVER = "none";

/** `--replace` and `--handover-socket`. */
export const HANDOVER_FLAGS = inGroup("Restart", {
  "replace": common(flag.boolean(false, {
    help: "Take over from the running process: its ports go to this process " +
      "when this one is ready, and it ends when its connections have " +
      "ended. No caller is refused meanwhile.",
  })),
  "handover-socket": flag.word("PATH", {
    help: "Unix socket on which the next process asks for the ports: a " +
      "path, or @NAME. none: no process may ask.",
    defaultText: "handover.sock in the state directory if there is an " +
      "identity, else a name with the port in it",
  }),
});

/** Their values. */
export type HandoverFlags = FlagValues<typeof HANDOVER_FLAGS>;

/** What the address of the handover socket depends on. */
export interface HandoverPlace {
  readonly command: string;
  /** `--handover-socket`. */
  readonly flag: string;
  /** Holds the process's identity; absent: it has none there. */
  readonly stateDirectory?: string | undefined;
  /** This port distinguishes it from others of its kind on this machine. */
  readonly port: { readonly hostname: string; readonly port: number };
}

/**
 * The handover socket of processes of one kind and place. A name without a path
 * belongs to the network namespace, as ports do, so only a process with the same
 * port finds it.
 *
 * @returns `undefined`: nowhere.
 */
export function handoverAddress(
  { command, flag, stateDirectory, port: at }: HandoverPlace,
): string | undefined {
  if (flag === NO_HANDOVER) return undefined;
  if (flag !== "") return flag;
  if (stateDirectory !== undefined) return `${stateDirectory}/handover.sock`;
  if (at.port === 0) return undefined;
  return `@tunnel-${command}-${at.hostname || "all"}-${at.port}`;
}

/** The flag; its value is at least 1. */
export const WORKERS_FLAG: { readonly workers: Flag<number> } = {
  "workers": common(flag.parsed(1, workerCount, {
    group: "All cores",
    placeholder: "N|auto",
    help: "Processes that share the ports and the work; one uses one core. " +
      "auto: as many as there are cores that this program may use. A worker " +
      "that dies is replaced and costs its own connections.",
    defaultText: "1",
  })),
};

/**
 * The platform counts what affinity and the quotas of control groups leave, and
 * whole cores alone.
 *
 * @throws {FlagValueError}
 */
export function workerCount(
  text: string,
  cores: number = navigator.hardwareConcurrency,
): number {
  if (text === "auto") return Math.min(Math.max(cores, 1), WORKERS_MAX);
  const count = parseWholeNumber(text);
  if (count !== undefined && count >= 1 && count <= WORKERS_MAX) return count;
  throw new FlagValueError(
    `wanted a whole number from 1 to ${WORKERS_MAX}, or auto`,
  );
}

/**
 * Flags about the processes of one program: how many share its ports and its
 * work, and how a new one takes the place of one that runs.
 *
 * @module
 */

import {
  booleanFlag,
  common,
  type Flag,
  FlagValueError,
  type FlagValues,
  inGroup,
  parsedFlag,
  textFlag,
} from "./flag.ts";
import { WORKERS_MAX } from "../../admin/ask/worker_sockets.ts";
import { parseWholeNumber } from "./go_values.ts";

/** In place of an address: no process may ask for sockets. */
export const NO_HANDOVER = "none";

/** `--replace` and `--handover-socket`. */
export const HANDOVER_FLAGS = inGroup("Restart", {
  "replace": common(booleanFlag(false, {
    help: "Take over from the running process: its ports go to this process " +
      "when this one is ready, and it ends when its connections have " +
      "ended. No caller is refused meanwhile.",
  })),
  "handover-socket": textFlag("", {
    placeholder: "PATH",
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
  readonly stateDirectory?: string;
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
  "workers": common(parsedFlag(1, workerCount, {
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

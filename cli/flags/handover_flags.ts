/**
 * Flags of commands that a new process can replace while they run, and the socket
 * on which it asks.
 *
 * @module
 */

import { booleanFlag, type FlagValues, textFlag } from "./flag.ts";

const GROUP = "Restart";

/** In place of an address: no process may ask for sockets. */
export const NO_HANDOVER = "none";

/** `--replace` and `--handover-socket`. */
export const HANDOVER_FLAGS = {
  "replace": booleanFlag(false, {
    isCommon: true,
    group: GROUP,
    help: "Take over from the running process: its ports go to this process " +
      "when this one is ready, and it ends when its connections have " +
      "ended. No caller is refused meanwhile.",
  }),
  "handover-socket": textFlag("", {
    group: GROUP,
    placeholder: "PATH",
    help: "Unix socket on which the next process asks for the ports: a " +
      "path, or @NAME. none: no process may ask.",
    defaultText: "handover.sock in the state directory if there is an " +
      "identity, else a name with the port in it",
  }),
} as const;

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

/**
 * How a command runs that goes on until it is stopped, and that a newer process
 * can take the place of: it follows the one that runs, names the flags of ports
 * that it cannot open, and ends by signals.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import {
  handoverAddress,
  type HandoverFlags,
} from "../flags/handover_flags.ts";
import { type ListenFlag, namingFlags } from "../flags/listen_flags.ts";
import type { CommandContext } from "./command.ts";
import { ExitCode } from "./exit_codes.ts";
import { type Replaceable, Succession } from "./succession.ts";
import { untilStopped } from "./until_stopped.ts";

/** What is run. */
export interface LongRunning {
  /** Such as `server`. */
  readonly command: string;
  /** Values of {@linkcode HANDOVER_FLAGS}. */
  readonly flags: HandoverFlags;
  /** Holds the process's identity; absent: it has none there. */
  readonly stateDirectory: string | undefined;
  /** Tells it from others of its kind that have no identity. */
  readonly port: { readonly hostname: string; readonly port: number };
  /** Flags that tell a second one of its kind from the first. */
  readonly ownFlags: string;
  readonly listens: readonly ListenFlag[];
  /** Gets it up; rejects when that cannot be. */
  start(): Promise<Replaceable> | Replaceable;
}

/** Settles when everything has ended. */
export async function runUntilStopped(
  { command, flags, stateDirectory, port, ownFlags, listens, start }:
    LongRunning,
  { environment }: Pick<CommandContext, "environment">,
  log: Log,
): Promise<ExitCode> {
  const address = handoverAddress({
    command,
    flag: flags["handover-socket"],
    ...(stateDirectory === undefined ? {} : { stateDirectory }),
    port,
  });
  const { replace } = flags;
  const succession = await Succession.begin(
    { command, address, replace, ownFlags, environment },
    log,
  );
  const running = await succession.start(() => namingFlags(listens, start));
  await untilStopped(running, Deno, log);
  return ExitCode.OK;
}

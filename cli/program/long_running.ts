/**
 * How a command runs that goes on until it is stopped, and that a newer process
 * can take the place of: it follows the one that runs, names the flags of ports
 * that it cannot open, and ends by signals.
 *
 * @module
 */

import {
  type AdminAccess,
  adminSocketOf,
} from "../../net/listen/admin_port.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import { type LeveledLog, type Log, openLog } from "../../platform/log/log.ts";
import { foreignOwner } from "../../net/libc/state_owner.ts";
import { standardErrorIsReady } from "../../net/libc/descriptors.ts";
import { tlsInUse } from "../../net/tls/tls_in_use.ts";
import type { FlagValues } from "../flags/flag.ts";
import {
  handoverAddress,
  type HandoverFlags,
  type LOG_FLAGS,
} from "../flags/program_flags.ts";
import { type ListenFlag, namingFlags } from "../flags/addresses.ts";
import type { CommandContext } from "./command.ts";
import { ExitCode, failure } from "./exit_codes.ts";
import type { Replaceable } from "../../net/program/program.ts";
import { Succession } from "./succession.ts";
import { untilStopped } from "./until_stopped.ts";
import { startWorkers } from "./workers/worker_group.ts";
import type { WorkerRole } from "./workers/worker_words.ts";
import { runWorker } from "./workers/worker_side.ts";

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
  readonly workers: WorkersWanted;
  /** Gets it up; rejects when that cannot be. */
  start(): Promise<Replaceable> | Replaceable;
}

/** How many processes there are to be, and which of them this is. */
export interface WorkersWanted {
  readonly count: number;
  /** Absent: it is the parent of them, or the only one. */
  readonly role: WorkerRole | undefined;
  /** Where the program is asked how it is; absent: on its admin port alone. */
  readonly health?: ListenAddress;
  /** By whom and how the first one is asked about itself. */
  readonly access: AdminAccess;
  /** How long one may take to end. */
  readonly endMs: number;
}

/**
 * Whether this process is the parent of workers, which read sources and files
 * themselves.
 */
export function isParent({ count, role }: WorkersWanted): boolean {
  return count > 1 && role === undefined;
}

/** The log that its flags ask for; what is said of them is the first in it. */
export function programLog(
  command: string,
  { values, notices }: {
    readonly values: FlagValues<typeof LOG_FLAGS>;
    readonly notices: readonly string[];
  },
  role?: WorkerRole,
): LeveledLog {
  const log = openLog(command, {
    format: values["log-format"],
    level: values["v"],
    isReady: standardErrorIsReady,
    ...(role === undefined ? {} : { fields: { worker: role.index } }),
  });
  for (const notice of notices) log.warn(notice, { code: "TUN115" });
  return log;
}

/** Settles when everything has ended. */
export async function runUntilStopped(
  run: LongRunning,
  { environment, argv }: Pick<CommandContext, "environment" | "argv">,
  log: Log,
): Promise<ExitCode> {
  const { command, flags, stateDirectory, port, ownFlags, listens } = run;
  const { workers } = run;
  refuseForeign(command, stateDirectory);
  const startOne = async () => {
    const running = await namingFlags(listens, run.start);
    log.detail(tlsInUse());
    return running;
  };
  if (workers.role !== undefined) {
    await runWorker(startOne, workers.role, log);
    return ExitCode.OK;
  }
  const startAll = () =>
    startWorkers({
      ...workers,
      adminSocket: adminSocketOf(workers.access),
      argv: [command, ...argv],
      log,
    });
  const start = workers.count === 1
    ? startOne
    : () => namingFlags(listens, startAll);
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
  if (workers.count > 1) succession.writeByItself();
  const running = await succession.start(start);
  await untilStopped(running, Deno, log);
  return ExitCode.OK;
}

/** What root wrote, the service that has the directory could not read. */
function refuseForeign(command: string, directory: string | undefined): void {
  const owner = directory && foreignOwner(directory);
  if (typeof owner !== "number") return;
  throw failure(
    `Cannot run as root with ${directory}: it belongs to user ${owner}; ` +
      `systemctl start tunnel-${command}, or run this as that user`,
    "TUN122",
  );
}

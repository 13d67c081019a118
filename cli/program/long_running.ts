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
  type WORKERS_FLAG,
} from "../flags/program_flags.ts";
import { type ListenFlag, namingFlags } from "../flags/addresses.ts";
import type { CommandContext } from "./command.ts";
import { failure } from "./exit_codes.ts";
import { Program, type Replaceable } from "../../net/program/program.ts";
import { Succession } from "./succession.ts";
import { untilStopped } from "./until_stopped.ts";
import { startWorkers } from "./workers/worker_group.ts";
import type { WorkerRole } from "./workers/worker_words.ts";
import { runWorker } from "./workers/worker_side.ts";

/** What is run. */
export interface LongRunning {
  /** Such as `server`. */
  readonly command: string;
  readonly flags: HandoverFlags & FlagValues<typeof WORKERS_FLAG>;
  /** Which of several workers it is; absent: their parent, or the only one. */
  readonly role: WorkerRole | undefined;
  /** Holds the process's identity; absent: it has none there. */
  readonly stateDirectory: string | undefined;
  /** Tells it from others of its kind that have no identity. */
  readonly port: { readonly hostname: string; readonly port: number };
  /** The flag of that port. */
  readonly portFlag: string;
  readonly listens: readonly ListenFlag[];
  /** The health address of workers; absent: only their admin port answers. */
  readonly health?: ListenAddress;
  /** The ways to the admin API, and the rights there. */
  readonly access: AdminAccess;
  /** How long a worker may take to end. */
  readonly endMs: number;
  /** Gets it up; rejects when that cannot be. */
  start(): Promise<Replaceable> | Replaceable;
}

/** Gets a program up; rejects when that cannot be. */
export type Start<Options, Up = Replaceable> = (
  options: Options,
  log: Log,
) => Promise<Up>;

/**
 * Whether this process is the parent of workers, which read sources and files
 * themselves.
 */
export function isParent(
  { flags, role }: Pick<LongRunning, "flags" | "role">,
): boolean {
  return flags.workers > 1 && role === undefined;
}

/** The log that its flags ask for; notices about flags are its first lines. */
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
    fields: role && { worker: role.index },
  });
  for (const notice of notices) log.warn(notice, { code: "TUN115" });
  return log;
}

/** Settles when everything has ended. */
export async function runUntilStopped(
  run: LongRunning,
  { environment, argv }: Pick<CommandContext, "environment" | "argv">,
  log: Log,
): Promise<void> {
  const { command, flags, role, stateDirectory, port, listens } = run;
  refuseForeign(command, stateDirectory);
  const startOne = async () => {
    const running = await namingFlags(listens, run.start);
    log.detail(tlsInUse());
    return running;
  };
  if (role !== undefined) return await runWorker(startOne, role, log);
  const startAll = () =>
    startWorkers({
      ...run,
      count: flags.workers,
      adminSocket: adminSocketOf({ stateDirectory, ...run.access }),
      argv: [command, ...argv],
    }, new Program({ kind: "workers", eventLines: [] }, log));
  const start = flags.workers === 1
    ? startOne
    : () => namingFlags(listens, startAll);
  const address = handoverAddress({
    command,
    flag: flags["handover-socket"],
    stateDirectory,
    port,
  });
  const { replace } = flags;
  const ownFlags = stateDirectory === undefined
    ? run.portFlag
    : "a --state-dir and ports";
  const succession = await Succession.begin(
    { command, address, replace, ownFlags, environment },
    log,
  );
  if (flags.workers > 1) succession.writeByItself();
  const running = await succession.start(start);
  await untilStopped(running, Deno, log);
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

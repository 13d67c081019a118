/**
 * Gets several workers up, and their parent's own ports.
 *
 * @module
 */

import { socketStore } from "../../../net/bind/socket_store.ts";
import type { Log } from "../../../platform/log/log.ts";
import { UsageError } from "../../flags/usage_error.ts";
import { WorkerGroup } from "./worker_group.ts";
import { type WorkerAddresses, WorkerPorts } from "./worker_ports.ts";

/** What is started. */
export interface WorkersStart {
  readonly count: number;
  readonly http: WorkerAddresses;
  readonly endMs: number;
  /** The words behind the program's own. */
  readonly argv: readonly string[];
  readonly log: Log;
}

/**
 * @throws {UsageError} This machine cannot.
 * @throws {ListenError | CommandFailure} Nothing stays open.
 */
export async function startWorkers(
  { http, ...start }: WorkersStart,
): Promise<WorkerGroup> {
  const store = socketStore();
  if (store === undefined) {
    throw new UsageError(
      `Cannot use --workers=${start.count}: sockets are the platform's here, ` +
        "which processes cannot share; leave it out, or allow FFI on Linux",
    );
  }
  const ports = new WorkerPorts(http, start.log);
  try {
    return await WorkerGroup.start({ ...start, store, ports });
  } catch (error) {
    ports.close();
    throw error;
  }
}

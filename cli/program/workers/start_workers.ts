/**
 * Gets several workers up, and their parent's own port.
 *
 * @module
 */

import { socketStore } from "../../../net/bind/socket_store.ts";
import {
  type ListenAddress,
  listenHttp,
} from "../../../net/listen/listeners.ts";
import { UsageError } from "../../flags/usage_error.ts";
import { GroupAnswers } from "./group_answers.ts";
import { WorkerGroup, type WorkerGroupOptions } from "./worker_group.ts";

/** What is started. */
export interface WorkersStart extends
  Pick<
    WorkerGroupOptions,
    "count" | "argv" | "endMs" | "adminSocket" | "log"
  > {
  /** Where the program is asked how it is; absent: on its admin port. */
  readonly health?: ListenAddress;
}

/**
 * @throws {UsageError} This machine cannot.
 * @throws {ListenError | CommandFailure} Nothing stays open.
 */
export async function startWorkers(
  { health, ...start }: WorkersStart,
): Promise<WorkerGroup> {
  const store = socketStore();
  if (store === undefined) {
    throw new UsageError(
      `Cannot use --workers=${start.count}: sockets are the platform's here, ` +
        "which processes cannot share; leave it out, or allow FFI on Linux",
    );
  }
  const answers = new GroupAnswers();
  const port = health && listenHttp(health, (request) => answers.to(request));
  try {
    const own = { store, answers, ...(port && { health: port }) };
    return await WorkerGroup.start({ ...start, ...own });
  } catch (error) {
    port?.close();
    throw error;
  }
}

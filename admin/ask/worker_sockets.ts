/**
 * Finds the admin sockets of a program's workers on this machine.
 *
 * @module
 */

import { workerSocket } from "../../net/admin/own_group.ts";
import { kindAt } from "../../platform/files/kind_at.ts";

/** Each agent links to each worker of each server: more would be links alone. */
export const WORKERS_MAX = 64;

/** The numbers of those that have one beside `path`, that of the first one. */
export function otherWorkersAt(path: string): readonly number[] {
  return Array.from({ length: WORKERS_MAX - 1 }, (_, at) => at + 1)
    .filter((worker) => isSocket(workerSocket(path, worker)));
}

/** Whether there is a socket, with or without a program behind it. */
export function isSocket(path: string): boolean {
  return kindAt(path) === "socket";
}

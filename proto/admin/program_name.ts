/**
 * What a program is called on screens.
 *
 * @module
 */

import type { ProgramInfo } from "./status_answer.ts";

/** Of a worker, with its number. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-w\d+)?$/;

/** An id that nobody chose says less than the name of the machine. */
export function programName(
  { id, host }: Pick<ProgramInfo, "id" | "host">,
): string {
  return UUID.test(id) && host ? host : id;
}

/**
 * Whether a server could write its audit log, or its access log. Makes no file
 * that is not there.
 *
 * @module
 */

import { dirname } from "node:path";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { systemAuditFiles } from "../../../policy/audit_file.ts";
import { lookAtRoom } from "../walk/disk_room.ts";
import { failed, fine } from "../walk/faults.ts";
import type { Finding } from "../walk/path_walk.ts";

/** @param flag Which names the path. */
export async function lookAtLog(flag: string, path: string): Promise<Finding> {
  const folder = dirname(path);
  try {
    const isThere = await exists(path);
    if (isThere) systemAuditFiles(flag).check(path);
    else await checkFolder(folder);
  } catch (error) {
    return failed(
      "TUN606",
      `${flag} ${path} cannot be written: ${messageOf(error)}`,
      `make the folder for the server's user: install -d -o USER ${folder}`,
    );
  }
  return await lookAtRoom(folder, flag) ?? fine(`${path} can be written`);
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** @throws {Error} Who runs this could make no file in it. */
async function checkFolder(folder: string): Promise<void> {
  const { isDirectory, mode, uid, gid } = await Deno.stat(folder);
  if (!isDirectory) throw new Error(`${folder} is no folder`);
  const us = Deno.uid();
  if (us === 0 || mode === null) return;
  const bit = uid === us ? 0o200 : gid === Deno.gid() ? 0o020 : 0o002;
  if ((mode & bit) === 0) {
    throw new Error(`${folder} belongs to user ${uid}, and this is user ${us}`);
  }
}

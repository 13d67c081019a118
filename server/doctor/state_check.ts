/**
 * Looks at a server's state as the server would, and says what keeps it from it:
 * the directory and the machine below it, the store, the authorities. Writes
 * nothing, and makes no directory that is not there.
 *
 * @module
 */

import { statfs } from "node:fs/promises";
import { failed, fine, warned } from "../../client/doctor/faults.ts";
import type { Finding } from "../../client/doctor/path_walk.ts";
import { spanOf } from "../../client/doctor/tls_fault.ts";
import { readProcFile } from "../../net/libc/proc_files.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { authorityIdOf } from "../../proto/identity/authority_ids.ts";
import { type Authorities, loadAuthorities } from "../identity/authorities.ts";
import { openExistingState, type StateSource } from "../state/open_state.ts";
import type { StateEngine } from "../state/state_engine.ts";
import { StateAwayError, StateError } from "../state/state_error.ts";

/** Less room is a warning: audit logs and certificates need some. */
const FREE_BYTES_LOW = 64 * 1024 * 1024;
/** With less nothing more can be written. */
const FREE_BYTES_MIN = 256 * 1024;

/**
 * The directory and the file system that it is on.
 *
 * @param isLocal The authority is kept elsewhere; here is what is this machine's.
 */
export async function lookAtDirectory(
  root: string,
  isLocal: boolean,
): Promise<Finding> {
  try {
    if (!(await Deno.stat(root)).isDirectory) {
      return failed(
        "TUN804",
        `${root} is no directory`,
        "name the server's directory with --state-dir",
      );
    }
    for await (const _ of Deno.readDir(root)) break;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return notThere(root, isLocal);
    return failed(
      "TUN804",
      `${root} cannot be read: ${systemProblem(error)}`,
      `run as its owner: sudo tunnel doctor server --state-dir ${root}`,
    );
  }
  const room = await lookAtRoom(root);
  if (room !== undefined) return room;
  return fine(`${root} is there, and can be written`);
}

function notThere(root: string, isLocal: boolean): Finding {
  const message = `there is no ${root}: no server has run here with it`;
  return isLocal
    ? warned("TUN812", message, "start `tunnel server`: it makes it")
    : failed(
      "TUN812",
      message,
      "start `tunnel server`, which makes it; or name the server's directory " +
        "with --state-dir",
    );
}

/** Room and mode of the file system below. */
async function lookAtRoom(root: string): Promise<Finding | undefined> {
  if (isReadOnly(root, readProcFile("/proc/self/mountinfo") ?? "")) {
    return failed(
      "TUN919",
      `the file system of ${root} is mounted read-only`,
      `mount it with "rw" (dmesg says if an error of the disk made it so), or ` +
        "name another --state-dir",
    );
  }
  const { bavail, bsize, files, ffree } = await statfs(root);
  const free = bavail * bsize;
  if (free < FREE_BYTES_MIN || (files > 0 && ffree === 0)) {
    return failed(
      "TUN918",
      `the disk of ${root} is full (${Math.floor(free / 1024)} KiB free, ` +
        `${ffree} inodes)`,
      `make room (du -xhd1 / | sort -h), or move the directory`,
    );
  }
  if (free < FREE_BYTES_LOW) {
    return warned(
      "TUN918",
      `the disk of ${root} is nearly full ` +
        `(${Math.floor(free / 1024 / 1024)} MiB free)`,
      "make room before certificates and logs cannot be written",
    );
  }
  return undefined;
}

/** @param table `/proc/self/mountinfo`: the last mount of the longest prefix counts. */
export function isReadOnly(path: string, table: string): boolean {
  let longest = "";
  let options = "";
  for (const line of table.split("\n")) {
    const [, , , , place, flags] = line.split(" ");
    if (place === undefined || flags === undefined) continue;
    const inside = place === "/" || path === place ||
      path.startsWith(`${place}/`);
    if (!inside || place.length < longest.length) continue;
    longest = place;
    options = flags;
  }
  return options.split(",").includes("ro");
}

/** What was found in the store, for who looks further. */
export interface OpenedState {
  readonly finding: Finding;
  readonly engine?: StateEngine;
  readonly authorities?: Authorities;
}

/** The store and the authorities in it. Close what is opened. */
export async function openForDoctor(
  source: StateSource,
  nowMs: number,
): Promise<OpenedState> {
  let engine: StateEngine;
  try {
    engine = await openExistingState(source);
  } catch (error) {
    return { finding: unopened(source, error) };
  }
  try {
    const authorities = await loadAuthorities(engine);
    return { engine, authorities, finding: authority(authorities, nowMs) };
  } catch (error) {
    return { engine, finding: unopened(source, error) };
  }
}

function unopened({ connection }: StateSource, error: unknown): Finding {
  const message = messageOf(error);
  if (connection.kind !== "directory" && !isContent(error)) {
    return failed(
      "TUN802",
      message,
      connection.kind === "etcd"
        ? "see whether etcd runs and answers from here (etcdctl endpoint " +
          "health), and its certificates"
        : "see whether the API server answers from here (kubectl get --raw " +
          "/readyz), and what this account may do",
    );
  }
  const isOthers = /others could|belongs to user|permission denied/
    .test(message);
  return failed(
    isOthers ? "TUN804" : "TUN801",
    message,
    isOthers
      ? "run as its owner, with the mode that is named"
      : "restore the directory from a backup; a CA that is lost cannot be made " +
        "again, and nodes would have to join anew",
  );
}

/** The store answered, and what is in it cannot be used. */
function isContent(error: unknown): boolean {
  return error instanceof StateError && !(error instanceof StateAwayError);
}

function authority({ current }: Authorities, nowMs: number): Finding {
  const { facts } = current;
  const until = new Date(facts.notAfterMs).toISOString();
  const id = authorityIdOf(facts);
  if (facts.notBeforeMs > nowMs) {
    return failed(
      "TUN916",
      `the CA ${id} is good from ${
        new Date(facts.notBeforeMs).toISOString()
      } on, and this machine's clock says ${new Date(nowMs).toISOString()}: ` +
        `it is at least ${spanOf(facts.notBeforeMs - nowMs)} behind`,
      "set the clock (timedatectl set-ntp true, or chronyc makestep)",
    );
  }
  if (facts.notAfterMs < nowMs) {
    return failed(
      "TUN202",
      `the CA ${id} expired on ${until}`,
      "if the clock is right: tunnel ca rotate, then activate, and join all " +
        "nodes again",
    );
  }
  return fine(`the CA ${id} is whole, until ${until}`);
}

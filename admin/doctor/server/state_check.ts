/**
 * Checks a server's state as the server would, and reports what would stop it:
 * the directory and its file system, the store, the authorities, and whether
 * logs can be written. It writes and creates nothing.
 *
 * @module
 */

import { lookAtRoom } from "../walk/room.ts";
import { failed, type Finding, fine, warned } from "../walk/path_walk.ts";
import { spanOf } from "../walk/tls_fault.ts";
import { whenText } from "../../view/cells.ts";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { ifThere, systemProblem } from "../../../platform/files/file_error.ts";
import { authorityIdOf } from "../../../proto/identity/enrolment.ts";
import {
  type Authorities,
  loadAuthorities,
} from "../../../server/identity/authorities.ts";
import {
  openExistingState,
  type StateSource,
} from "../../../server/state/open_state.ts";
import type { Store } from "../../../neighbours/store/store.ts";
import {
  StoreAwayError,
  StoreError,
} from "../../../neighbours/store/store_error.ts";
import { dirname } from "node:path";
import { systemAuditFiles } from "../../../policy/audit_file.ts";

/** The directory and the file system that it is on. */
export async function lookAtDirectory(root: string): Promise<Finding> {
  try {
    if (!(await Deno.stat(root)).isDirectory) {
      return failed(
        "TUN801",
        `${root} is no directory`,
        "name the server's directory with --state-dir",
      );
    }
    for await (const _ of Deno.readDir(root)) break;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return notThere(root);
    return failed(
      "TUN801",
      `${root} cannot be read: ${systemProblem(error)}`,
      `run as its owner: sudo tunnel doctor server --state-dir ${root}`,
    );
  }
  const room = await lookAtRoom(root);
  if (room !== undefined) return room;
  return fine(`${root} is there, and can be written`);
}

/** The first start makes it, unless something else keeps the server from it. */
function notThere(root: string): Finding {
  return warned(
    "TUN121",
    `there is no ${root}: no server has run here with it`,
    "start `tunnel server`, which makes it; or name the server's directory " +
      "with --state-dir",
  );
}

/** The findings in the store, for later checks. */
interface OpenedState {
  readonly finding: Finding;
  readonly engine?: Store;
  readonly authorities?: Authorities;
}

/** The store and the authorities in it. The caller closes what is opened. */
export async function openForDoctor(
  source: StateSource,
  nowMs: number,
): Promise<OpenedState> {
  let engine: Store;
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
    "TUN801",
    message,
    isOthers
      ? "run as its owner, with the mode that is named"
      : "restore the directory from a backup; a CA that is lost cannot be made " +
        "again, and nodes would have to join again",
  );
}

/** The store answered, and its content cannot be used. */
function isContent(error: unknown): boolean {
  return error instanceof StoreError && !(error instanceof StoreAwayError);
}

function authority({ current }: Authorities, nowMs: number): Finding {
  const { facts } = current;
  const until = whenText(facts.notAfterMs);
  const id = authorityIdOf(facts);
  if (facts.notBeforeMs > nowMs) {
    return failed(
      "TUN916",
      `the CA ${id} is good from ${whenText(facts.notBeforeMs)} on, and this ` +
        `machine's clock says ${whenText(nowMs)}: it is at least ` +
        `${spanOf(facts.notBeforeMs - nowMs)} behind`,
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

/** @param flag Which names the path. */
export async function lookAtLog(flag: string, path: string): Promise<Finding> {
  const folder = dirname(path);
  try {
    const isThere = await ifThere(Deno.lstat(path)) !== undefined;
    if (isThere) systemAuditFiles(flag).check(path);
    else await checkFolder(folder);
  } catch (error) {
    return failed(
      "TUN905",
      `${flag} ${path} cannot be written: ${messageOf(error)}`,
      `make the folder for the server's user: install -d -o USER ${folder}`,
    );
  }
  return await lookAtRoom(folder, flag) ?? fine(`${path} can be written`);
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

/**
 * The sessions of browsers, until each logs out or its day is over. They are
 * few, and in a file, so that a restart neither ends a session nor revives one.
 *
 * The file decides: it is read again when another process has written it,
 * because a process that takes over shares it with its predecessor. A file that
 * cannot be read admits no browser; a file that cannot be written still admits
 * them.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { isSystemError } from "../../platform/files/file_error.ts";
import { SavedFile } from "../../platform/files/saved_file.ts";
import { fingerprint } from "../../platform/files/watch_files.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { AdminWay } from "./admin_api.ts";

/** The session: the user, and who signed it in. */
export interface Login {
  readonly name: string;
  /** The most that it may do. */
  readonly role: AdminRole;
  /** How the user who signed it in was identified, and that user's rights. */
  readonly way: AdminWay;
  readonly by: AdminRole;
  readonly untilMs: number;
}

/**
 * Limit for one name, and for all users who came the same way with the same
 * role: the oldest makes room for the next. So a user cannot end the sessions
 * of another role.
 */
export const LOGINS_OF_ONE_MAX = 16;
export const LOGINS_OF_ROLE_MAX = 64;

/**
 * Limit on what is kept of a certificate, so that all sessions fit into the
 * file.
 */
export const WAY_LENGTH_MAX = 2_000;
const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Stores `login` at `key`; if there is no room, in place of the oldest of its
 * own user.
 */
export function addLogin(
  logins: Map<string, Login>,
  key: string,
  login: Login,
): void {
  const { name, by, way: { kind } } = login;
  const same = [...logins]
    .filter(([, one]) => one.by === by && one.way.kind === kind);
  const own = same.filter(([, one]) => one.name === name);
  const gone = own.length >= LOGINS_OF_ONE_MAX
    ? own[0]
    : same.length >= LOGINS_OF_ROLE_MAX
    ? same[0]
    : undefined;
  if (gone !== undefined) logins.delete(gone[0]);
  logins.set(key, login);
}

export class Logins {
  #byId = new Map<string, Login>();
  readonly #file: SavedFile | undefined;
  #seen = "";
  /** Changes are made one after another. */
  #changes: Promise<unknown> = Promise.resolve();
  #isChanging = false;

  /** @param path Absent: they are known as long as the process lives. */
  constructor(private readonly path: string | undefined, log: Log) {
    this.#file = path === undefined ? undefined : new SavedFile({
      path,
      format: "tunnel-admin-logins",
      owner: "this program",
      what: "logins of browsers",
      unusable: "browsers have to log in again (tunnel dashboard)",
      unkept: "browsers have to log in again after the next start",
      bytesMax: FILE_BYTES_MAX,
      delayMs: 0,
      items: () => this.#byId,
      log,
      timers: systemTimers,
    });
  }

  get(id: string, nowMs: number): Login | undefined {
    this.#refresh();
    const login = this.#byId.get(id);
    return login !== undefined && login.untilMs > nowMs ? login : undefined;
  }

  async add(id: string, login: Login, nowMs: number): Promise<void> {
    await this.#change(() => {
      for (const [key, { untilMs }] of this.#byId) {
        if (untilMs <= nowMs) this.#byId.delete(key);
      }
      addLogin(this.#byId, id, login);
    });
  }

  /** @returns Why a restart may admit it again; `undefined`: it is over. */
  async end(id: string): Promise<string | undefined> {
    this.#refresh();
    if (!this.#byId.has(id)) return undefined;
    const problem = await this.#change(() => this.#byId.delete(id));
    if (problem === undefined) return undefined;
    try {
      // On a full disk it is better that all sessions end than that an ended
      // one lives on.
      Deno.removeSync(this.path!);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      if (codeOf(error) !== "ENOENT") return `${this.path}: ${problem}`;
    }
    this.#seen = fingerprint(this.path!);
    return undefined;
  }

  #refresh(): void {
    if (this.path === undefined || this.#isChanging) return;
    const seen = fingerprint(this.path);
    if (seen === this.#seen) return;
    this.#seen = seen;
    const items = this.#file!.readSync()?.items ?? [];
    this.#byId = new Map(items as [string, Login][]);
  }

  /** @returns Why the file does not contain it. */
  #change(change: () => unknown): Promise<string | undefined> {
    const done = this.#changes.then(async () => {
      this.#refresh();
      change();
      this.#isChanging = true;
      try {
        this.#file?.changed();
        await this.#file?.close();
      } finally {
        this.#isChanging = false;
        if (this.path !== undefined) this.#seen = fingerprint(this.path);
      }
      return this.#file?.problem;
    });
    this.#changes = done.catch(() => {});
    return done;
  }
}

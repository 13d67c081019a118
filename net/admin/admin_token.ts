/**
 * A token in a file that only this program's user can read: a caller with the
 * token has that user's rights. A port on loopback has no better way, because
 * every user of the machine reaches it and TCP names no user.
 *
 * @module
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { replaceFile } from "../../platform/files/atomic_file.ts";
import {
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import {
  checkPrivate,
  checkSeen,
  PrivateFileError,
} from "../../platform/files/private_files.ts";
import type { Log } from "../../platform/log/log.ts";

/** In the state directory: a user who can read it may ask, and act. */
export const ADMIN_TOKEN_FILE = "admin.token";

/** The same, for a user who may only ask. */
export const ADMIN_VIEW_TOKEN_FILE = "admin-view.token";

export const TOKEN_FILES = {
  operate: ADMIN_TOKEN_FILE,
  view: ADMIN_VIEW_TOKEN_FILE,
} as const;

const TOKEN = /^[0-9a-f]{64}$/;

export class AdminToken {
  constructor(readonly path: string) {}

  /**
   * Makes the file when it is missing; programs that share a state directory
   * share it.
   *
   * @param loss What follows when it cannot be made, for the log.
   */
  async make(log: Log, loss: string): Promise<void> {
    const { path } = this;
    try {
      if (await isThere(path)) await checkPrivate(path, "read");
      if (this.value !== undefined) return;
    } catch (error) {
      if (!(error instanceof PrivateFileError)) throw error;
      log.warn(`${error.message}; another token was put there`, {
        code: "TUN905",
      });
    }
    const token = crypto.getRandomValues(new Uint8Array(32)).toHex();
    try {
      await replaceFile(path, `${token}\n`);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      log.warn(`Cannot write ${path}: ${systemProblem(error)}; ${loss}`, {
        code: "TUN905",
      });
    }
  }

  /**
   * Read each time: another program may have replaced it. A file that others
   * can read or write is not trusted.
   */
  get value(): string | undefined {
    const { path } = this;
    try {
      checkSeen(path, Deno.statSync(path), "read");
      const text = Deno.readTextFileSync(path).trim();
      return TOKEN.test(text) ? text : undefined;
    } catch (error) {
      const isUnusable = error instanceof PrivateFileError;
      if (isUnusable || isSystemError(error)) return undefined;
      throw error;
    }
  }

  /** Used later to check that it did not change. */
  get mark(): string {
    return markOf(this.value ?? "");
  }

  /** Whether a request shows it. */
  isShown({ headers }: Pick<Request, "headers">): boolean {
    const { value } = this;
    if (value === undefined) return false;
    const bytes = (text: string) => new TextEncoder().encode(text);
    const given = bytes(headers.get("authorization") ?? "");
    const wanted = bytes(`Bearer ${value}`);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }
}

/** A hash of a secret, or of authorities; it cannot be reversed. */
export function markOf(text: string): string {
  return createHash("sha256").update(`mark ${text}`).digest("hex");
}

async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (isSystemError(error)) return false;
    throw error;
  }
}

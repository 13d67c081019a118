/**
 * A token in a file that only this program's user can read: who shows what is in
 * it may do what that user may. A port on loopback has nothing better, for every
 * user of the machine reaches it, and nobody says who he is.
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

/** In the state directory: whoever can read it may ask, and do. */
export const ADMIN_TOKEN_FILE = "admin.token";

/** The same: whoever can read it may ask. */
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
   * Read each time: another program may have made it anew. What others can read,
   * or may have put there, is nobody's word.
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

  /** To see later that it is still the same. */
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

/** Of a secret, or of authorities, and no way back to them. */
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

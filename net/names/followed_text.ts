/**
 * What stands in a small file, read again when it has changed; a file that is
 * not there, or that we may not read, is empty.
 *
 * Read by system calls at once and not by the platform's threads: a stuck
 * look-up holds those, and reading a file's state costs less than a thread's
 * turn.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";

/** How long a file is taken to be as it was. */
export const UNCHANGED_MS = 1_000;

/** The state of a file that cannot be read. */
const NO_FILE = "";

export class FollowedText<Content> {
  #lookedMs = -Infinity;
  #state = NO_FILE;
  #content: Content;

  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    private readonly read: (text: string) => Content,
  ) {
    this.#content = read("");
  }

  get content(): Content {
    const nowMs = this.clock.now();
    if (nowMs - this.#lookedMs < UNCHANGED_MS) return this.#content;
    this.#lookedMs = nowMs;
    const state = stateOf(this.path);
    if (state === this.#state) return this.#content;
    this.#state = state;
    return this.#content = this.read(
      state === NO_FILE ? "" : textOf(this.path),
    );
  }
}

function stateOf(path: string): string {
  // Queried first, because an attempt without the permission would prompt.
  const { state } = Deno.permissions.querySync({ name: "read", path });
  if (state !== "granted") return NO_FILE;
  try {
    const { mtime, size, ino, ctime } = Deno.statSync(path);
    return [mtime?.getTime(), ctime?.getTime(), size, ino].join(" ");
  } catch {
    return NO_FILE; // It is not there: that is an answer, too.
  }
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}

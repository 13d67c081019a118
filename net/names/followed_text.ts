/**
 * What stands in a small file, read again when it has changed.
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

export class FollowedText<Content> {
  #lookedMs = -Infinity;
  #state: string | undefined;
  #content: Content;

  /** @param read Of `undefined`: there is no such file, or we may not read it. */
  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    private readonly read: (text: string | undefined) => Content,
  ) {
    this.#content = read(undefined);
  }

  get content(): Content {
    const nowMs = this.clock.now();
    if (nowMs - this.#lookedMs < UNCHANGED_MS) return this.#content;
    this.#lookedMs = nowMs;
    const state = stateOf(this.path);
    if (state === this.#state) return this.#content;
    this.#state = state;
    return this.#content = this.read(textOf(this.path));
  }
}

/** Queried first, because an attempt without the permission would prompt. */
export function mayRead(path: string): boolean {
  return Deno.permissions.querySync({ name: "read", path }).state === "granted";
}

function stateOf(path: string): string | undefined {
  if (!mayRead(path)) return undefined;
  try {
    const { mtime, size, ino, ctime } = Deno.statSync(path);
    return [mtime?.getTime(), ctime?.getTime(), size, ino].join(" ");
  } catch {
    return undefined; // It is not there: that is an answer, too.
  }
}

function textOf(path: string): string | undefined {
  if (!mayRead(path)) return undefined;
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}

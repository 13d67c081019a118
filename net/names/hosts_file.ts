/**
 * The names of a hosts(5) file, read again when it changes.
 *
 * @module
 */

import { isIpAddress } from "../../proto/peer/ip_address.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { fingerprint } from "../../platform/files/watch_files.ts";

/** Addresses by name; names in small letters, without a dot at their end. */
export type HostsFile = ReadonlyMap<string, readonly string[]>;

/** Lines that make no sense are skipped, as the C library does. */
export function parseHosts(text: string): HostsFile {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = wordsOf(line);
    if (address === undefined || !isIpAddress(address)) continue;
    for (const written of names) {
      const name = written.toLowerCase().replace(/\.$/, "");
      const known = hosts.get(name);
      if (known === undefined) hosts.set(name, [address]);
      else if (!known.includes(address)) known.push(address);
    }
  }
  return hosts;
}

/** The words of a line of a configuration file, comments left out. */
export function wordsOf(line: string, comments: RegExp = /#.*/): string[] {
  return line.replace(comments, "").split(/[ \t\r\f\v]+/)
    .filter((word) => word !== "");
}

/** How long a file counts as unchanged. */
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
  return state === "granted" ? fingerprint(path) : NO_FILE;
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}

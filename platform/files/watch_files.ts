/**
 * Notices that files have changed, however they are replaced: written in place,
 * renamed over, a Kubernetes volume's `..data` link swapped, their directory
 * exchanged, created only later.
 *
 * Directories are watched and files are checked: `stat` decides whether a file
 * has changed. All files are also checked from time to time, which is the only
 * way when they cannot be watched (network file systems, a limit on watches).
 *
 * @module
 */

import { basename, dirname, resolve } from "node:path";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  DirectoryWatch,
  type OpenFsEvents,
  type PathNews,
} from "./directory_watch.ts";

/** More files are no configuration but a mistake; each costs a `stat`. */
export const WATCHED_FILES_MAX = 256;

/** Names of entries that are kept until they are reported. */
export const CHANGED_ENTRIES_MAX = 1_000;

/**
 * Changes that come this close behind each other are looked at once: a file is
 * written in pieces, and a key comes behind its certificate. A file that is
 * watched alone and was renamed into its place is looked at immediately, unless
 * it was just now; …
 */
const SETTLE_MS = 100;

/** … all others not later than this after the first. */
const SETTLE_MS_MAX = 1_000;

/** How often everything is looked at, with and without a watch that works. */
const LOOK_MS = { watched: 60_000, unwatched: 5_000 };

/** What {@linkcode watchFiles} needs. */
export interface FileWatchOptions {
  readonly files?: readonly string[];
  /** Directories whose entries are reported one by one, as they are renamed in. */
  readonly directories?: readonly string[];
  readonly timers: Timers;
  /** These files have changed: new content, created, or gone. */
  onFiles?(files: readonly string[]): void;
  /**
   * The file that is watched alone was written to in its place, and closed. It
   * may be written to again at once, so `onFiles` follows when that has settled.
   */
  onWritten?(): void;
  /**
   * Entries of directories have changed.
   *
   * @param names Absent when it is not known which, or they are too many.
   */
  onEntries?(directory: string, names: readonly string[] | undefined): void;
  /** One line for the log. */
  onProblem(line: string): void;
  /** For tests. */
  readonly open?: OpenFsEvents | undefined;
}

/** A watch that is under way. */
export interface FileWatch {
  close(): void;
}

/**
 * Starts to watch. What is there now counts as known.
 *
 * @throws {RangeError} When they are more than {@linkcode WATCHED_FILES_MAX}.
 */
export function watchFiles(options: FileWatchOptions): FileWatch {
  return new Watch(options);
}

class Watch implements FileWatch {
  /** By the given path: the state at the last look. */
  readonly #files: Map<string, string>;
  readonly #directories: Map<string, string>;
  /** Entries that were named since the last look; `undefined`: too many. */
  readonly #named = new Map<string, Set<string> | undefined>();
  readonly #watch: DirectoryWatch;
  /** The file that is watched alone. */
  readonly #only: string | undefined;
  #arrivedMs = -Infinity;
  #isWatched = true;
  #settling: Timer | undefined;
  #firstNewsMs = 0;
  #nextLook: Timer | undefined;

  constructor(private readonly options: FileWatchOptions) {
    const { files = [], directories = [], open } = options;
    const count = files.length + directories.length;
    if (count > WATCHED_FILES_MAX) {
      throw new RangeError(
        `Cannot watch ${count} files: at most ${WATCHED_FILES_MAX}`,
      );
    }
    this.#watch = new DirectoryWatch({
      onPaths: (paths, news) => this.#onPaths(paths, news),
      onGap: () => this.#look(true),
      onState: (problem) => this.#onState(problem),
    }, open);
    this.#files = fingerprints(files);
    this.#only = count === 1 && files[0] !== undefined
      ? resolve(files[0])
      : undefined;
    this.#directories = fingerprints(directories);
    this.#watch.follow(this.#wanted());
  }

  close(): void {
    this.#watch.close();
    this.#settling?.cancel();
    this.#nextLook?.cancel();
  }

  #onPaths(paths: readonly string[], news: PathNews): void {
    for (const path of paths) this.#name(dirname(path), basename(path));
    const { timers } = this.options;
    const now = timers.now();
    const isOnly = this.#only !== undefined && paths.at(-1) === this.#only;
    const isNew = now - this.#arrivedMs >= SETTLE_MS;
    if (isOnly && isNew && news !== "touched") {
      this.#arrivedMs = now;
      if (news === "renamed") return this.#look();
      this.options.onWritten?.();
    }
    if (this.#settling === undefined) this.#firstNewsMs = now;
    this.#settling?.cancel();
    const left = this.#firstNewsMs + SETTLE_MS_MAX - now;
    this.#settling = timers.after(
      Math.max(0, Math.min(SETTLE_MS, left)),
      () => this.#look(),
    );
  }

  #name(parent: string, name: string): void {
    for (const directory of this.#directories.keys()) {
      if (resolve(directory) !== parent) continue;
      if (!this.#named.has(directory)) this.#named.set(directory, new Set());
      const names = this.#named.get(directory);
      names?.add(name);
      if (names !== undefined && names.size > CHANGED_ENTRIES_MAX) {
        this.#named.set(directory, undefined);
      }
    }
  }

  #onState(problem: string | undefined): void {
    this.#isWatched = problem === undefined;
    this.#schedule();
    if (problem === undefined) return;
    const [first = ""] = [...this.#files.keys(), ...this.#directories.keys()];
    this.options.onProblem(
      `Cannot watch ${dirname(first)}: ${problem}; files are looked at every ` +
        `${LOOK_MS.unwatched / 1000} s instead`,
    );
  }

  #schedule(): void {
    this.#nextLook?.cancel();
    const every = this.#isWatched ? LOOK_MS.watched : LOOK_MS.unwatched;
    this.#nextLook = this.options.timers.after(every, () => {
      this.#schedule();
      this.#look();
    });
  }

  /** @param hasGap Names of entries may be missing: there was no watch. */
  #look(hasGap = false): void {
    this.#settling?.cancel();
    this.#settling = undefined;
    // The watch begins before the look: a change in between is seen twice.
    this.#watch.follow(this.#wanted());
    const files = [...this.#files.keys()].filter((file) =>
      hasChanged(this.#files, file)
    );
    if (files.length > 0) this.options.onFiles?.(files);
    for (const directory of this.#directories.keys()) {
      const isOther = hasChanged(this.#directories, directory);
      const names = this.#named.get(directory);
      if (names !== undefined && !hasGap) {
        this.options.onEntries?.(directory, [...names]);
      } else if (isOther || this.#named.has(directory)) {
        this.options.onEntries?.(directory, undefined);
      }
    }
    this.#named.clear();
  }

  /** The directories of all links and files on the way to the paths. */
  #wanted(): Set<string> {
    const wanted = new Set(
      [...this.#directories.keys()].map((path) => resolve(path)),
    );
    for (const file of this.#files.keys()) {
      wanted.add(dirname(resolve(file)));
      try {
        wanted.add(dirname(Deno.realPathSync(file)));
      } catch {
        // Not there now; the caller finds it missing.
      }
    }
    return wanted;
  }
}

function fingerprints(paths: readonly string[]): Map<string, string> {
  return new Map(paths.map((path) => [path, fingerprint(path)]));
}

function hasChanged(known: Map<string, string>, path: string): boolean {
  const seen = fingerprint(path);
  if (seen === known.get(path)) return false;
  known.set(path, seen);
  return true;
}

/**
 * The identity of a version of a file. The change time is part of it: a file
 * that becomes readable has changed, too.
 */
export function fingerprint(path: string): string {
  try {
    const { dev, ino, size, mtime, ctime } = Deno.statSync(path);
    return [dev, ino, size, Number(mtime), Number(ctime)].join(" ");
  } catch (error) {
    return error instanceof Error ? error.name : "unreadable";
  }
}

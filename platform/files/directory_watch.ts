/**
 * Reports changes in some directories, even after they were replaced.
 *
 * The platform watches the directory that it found at a path, not the path: a
 * replaced directory is still watched, and a missing one cannot be. So `follow`
 * looks again at each path, and watches the nearest parent of a missing
 * directory.
 *
 * A report is only a hint: the receiver must look at the files.
 *
 * @module
 */

import { messageOf } from "../errors/error_code.ts";
import { guarded, unawaited } from "../errors/internal_errors.ts";
import { dirname } from "node:path";

/** The platform's news, or a test's. */
export interface FsEvents extends
  AsyncIterable<{
    readonly paths: string[];
    /**
     * `rename`: it came to the last of the paths as a whole. `access`: its
     * writer has closed it.
     */
    readonly kind?: string;
    /** `rescan`: more has happened at once than could be noted down. */
    readonly flag?: string | null;
  }> {
  close(): void;
}

/** Opens the news; throws when that is impossible, such as for want of watches. */
export type OpenFsEvents = (directories: string[]) => FsEvents;

/** `renamed`: into its place. `closed`: by its writer. */
export type PathNews = "renamed" | "closed" | "touched";

const NEWS: ReadonlyMap<string, PathNews> = new Map<string, PathNews>(
  Object.entries({
    rename: "renamed",
    access: "closed",
  }),
);

/** The reported changes. */
export interface DirectoryWatchEvents {
  /**
   * Something happened at these paths, spelled as the directories were.
   *
   * @param news What happened to the last of them, if that is known.
   */
  onPaths(paths: readonly string[], news: PathNews): void;
  /** Something may have happened unseen: the watch is new, or overflowed. */
  onGap(): void;
  /** Watching does not work, or works again. */
  onState(problem: string | undefined): void;
}

/** Not recursive: a directory's entries and the directory itself. */
function openFsEvents(directories: string[]): FsEvents {
  return Deno.watchFs(directories, { recursive: false });
}

export class DirectoryWatch {
  #wanted: readonly string[] = [];
  #watched = "";
  #source: FsEvents | undefined;
  #listening = Promise.resolve();
  #isClosing = false;
  #isClosed = false;
  /** The last that was reported; `null` before anything was. */
  #problem: string | undefined | null = null;

  constructor(
    private readonly events: DirectoryWatchEvents,
    private readonly open: OpenFsEvents = openFsEvents,
  ) {}

  /**
   * Watches the directories that are now at `directories`. Cheap when they are
   * watched already.
   */
  follow(directories: Iterable<string>): void {
    this.#wanted = [...directories];
    if (!this.#isClosing && !this.#isClosed) this.#settle();
  }

  close(): void {
    this.#isClosed = true;
    this.#source?.close();
    this.#source = undefined;
  }

  #settle(): void {
    const found = new Map(this.#wanted.map(nearestDirectory));
    const wanted = [...found].sort().join("\n");
    if (this.#source === undefined) return this.#start(found, wanted);
    if (wanted !== this.#watched) unawaited("file", this.#restart());
  }

  #start(found: ReadonlyMap<string, string>, wanted: string): void {
    try {
      this.#source = this.open([...found.keys()]);
    } catch (error) {
      return this.#report(messageOf(error));
    }
    this.#watched = wanted;
    this.#listening = this.#listen(this.#source);
    this.#report(undefined);
    this.events.onGap();
  }

  /**
   * If a path is still watched, the platform returns the existing watch, with
   * the directory that is gone. So the old watch must have ended.
   */
  async #restart(): Promise<void> {
    this.#isClosing = true;
    this.#source?.close();
    this.#source = undefined;
    await this.#listening;
    this.#isClosing = false;
    if (!this.#isClosed) this.#settle();
  }

  async #listen(source: FsEvents): Promise<void> {
    let problem = "the platform has ended the watch";
    try {
      for await (const { paths, kind, flag } of source) {
        if (source !== this.#source) continue;
        const news = NEWS.get(kind ?? "") ?? "touched";
        guarded("file", () => {
          if (flag === "rescan") this.events.onGap();
          else this.events.onPaths(paths, news);
        });
      }
    } catch (error) {
      problem = messageOf(error);
    }
    if (source !== this.#source) return;
    this.#source = undefined;
    this.#report(problem);
  }

  #report(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.events.onState(problem);
  }
}

/** The directory at `path` or above it, and its identity. */
function nearestDirectory(path: string): [path: string, identity: string] {
  for (let directory = path;; directory = dirname(directory)) {
    try {
      const { isDirectory, dev, ino } = Deno.statSync(directory);
      if (isDirectory) return [directory, `${dev}:${ino}`];
    } catch {
      // Missing or unreadable: a watch on its parent shows when that changes.
    }
    if (directory === dirname(directory)) return [directory, ""];
  }
}

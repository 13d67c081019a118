/**
 * The data that a process keeps for its next run: one file, replaced as a
 * whole.
 *
 * Its first line has its format, its owner, its time, and the checksum of the
 * rest; each further line is an item in JSON. A file that is damaged, of
 * another owner or too long is not used and does no harm; a full disk is a line
 * in the log. The content may decide where connections go, so a file that
 * others can write to is not used either.
 *
 * @module
 */

import type { Tools } from "../program/tools.ts";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { setImmediate } from "node:timers";
import type { Timer } from "../../proto/sync/clock.ts";
import { unawaited } from "../errors/internal_errors.ts";
import type { LogFields } from "../log/log.ts";
import { removeUnfinishedOf, replaceFile } from "./atomic_file.ts";
import { isSystemError, systemProblem } from "./file_error.ts";
import { checkSeen, PrivateFileError } from "./private_files.ts";

const VERSION = 1;

/** How long items are written at a stretch: connections wait meanwhile. */
const SLICE_MS = 2;

/** The kept items, and how often they are written. */
export interface SavedFileOptions extends Tools {
  readonly path: string;
  /** Distinguishes it from other files, such as `tunnel-proxy-addresses`. */
  readonly format: string;
  /**
   * The owner of the content, in words for the log; another owner's file is not
   * used.
   */
  readonly owner: string;
  /**
   * Its content in words, for sentences such as `Cannot keep WHAT in PATH: …`.
   */
  readonly what: string;
  /** What follows when it cannot be used, and when it cannot be written. */
  readonly unusable: string;
  readonly unkept: string;
  /** Longer files are neither written nor read. */
  readonly bytesMax: number;
  /** Delay until a change is on disk … */
  readonly delayMs: number;
  /** … unless it was written to just before. */
  readonly intervalMs?: number;
  /** All there is at the moment of writing. */
  readonly items: () => Iterable<unknown>;
  readonly fields?: LogFields;
  /** Wall clock, in milliseconds. */
  readonly now?: () => number;
}

/** The content of a file that is undamaged by its checksum. */
export interface Saved {
  readonly savedMs: number;
  readonly items: readonly unknown[];
}

type State =
  | { readonly kind: "kept" }
  /** Without a timer it is `close` that writes. */
  | { readonly kind: "due"; readonly timer?: Timer }
  | {
    readonly kind: "saving";
    readonly done: Promise<void>;
    /** There was something new meanwhile. */
    readonly isStale: boolean;
  };

export class SavedFile {
  #state: State = { kind: "kept" };
  #savedMs = -Infinity;
  #problem: string | undefined;
  #hasWritten = false;
  #isClosed = false;

  constructor(private readonly options: SavedFileOptions) {}

  /** Why the newest state is not on disk; `undefined`: it is, or will be. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Reads the file. Every error is logged. */
  async read(): Promise<Saved | undefined> {
    const { path } = this.options;
    try {
      this.#check(await Deno.stat(path));
      return this.#parse(await Deno.readTextFile(path));
    } catch (error) {
      return this.#unusable(error);
    }
  }

  /** The same at once: for small files, before a program starts. */
  readSync(): Saved | undefined {
    const { path } = this.options;
    try {
      this.#check(Deno.statSync(path));
      return this.#parse(Deno.readTextFileSync(path));
    } catch (error) {
      return this.#unusable(error);
    }
  }

  /** There is something new. */
  changed(): void {
    const state = this.#state;
    if (state.kind === "due") return;
    if (state.kind === "saving") {
      this.#state = { ...state, isStale: true };
      return;
    }
    if (this.#isClosed) {
      this.#state = { kind: "due" };
      return;
    }
    const { timers, delayMs, intervalMs = 0 } = this.options;
    const sinceMs = timers.now() - this.#savedMs;
    const timer = timers.after(
      Math.max(delayMs, intervalMs - sinceMs),
      () => unawaited("file", this.#save()),
    );
    this.#state = { kind: "due", timer };
  }

  /** Settles when everything is on disk, or cannot be. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#state.kind === "saving") await this.#state.done;
    if (this.#state.kind !== "due") return;
    this.#state.timer?.cancel();
    await this.#save();
  }

  #save(): Promise<void> {
    const done = this.#write(this.options.items()).finally(() => {
      const isStale = this.#state.kind === "saving" && this.#state.isStale;
      this.#state = { kind: "kept" };
      this.#savedMs = this.options.timers.now();
      if (isStale) this.changed();
    });
    this.#state = { kind: "saving", done, isStale: false };
    return done;
  }

  async #write(items: Iterable<unknown>): Promise<void> {
    const { path, what, unkept, log, fields } = this.options;
    try {
      const text = await this.#textOf(items);
      await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
      // What an earlier life was killed over.
      if (!this.#hasWritten) await removeUnfinishedOf(path);
      this.#hasWritten = true;
      await replaceFile(path, text);
      if (this.#problem !== undefined) {
        log.event(`Can keep ${what} in ${path} again`, fields);
      }
      this.#problem = undefined;
    } catch (error) {
      const problem = problemOf(error);
      if (problem !== this.#problem) {
        log.warn(
          `Cannot keep ${what} in ${path}: ${problem}; ${unkept}`,
          { code: "TUN905", ...fields },
        );
      }
      this.#problem = problem;
    }
  }

  async #textOf(items: Iterable<unknown>): Promise<string> {
    const { format, owner, bytesMax, now = Date.now } = this.options;
    const hash = createHash("sha256");
    const lines: string[] = [""];
    let bytes = 0;
    let untilMs = performance.now() + SLICE_MS;
    for (const item of items) {
      const line = `${JSON.stringify(item)}\n`;
      lines.push(line);
      hash.update(line);
      bytes += Buffer.byteLength(line);
      if (bytes > bytesMax) throw tooLong(bytesMax);
      if (performance.now() < untilMs) continue;
      await new Promise((go) => setImmediate(go));
      untilMs = performance.now() + SLICE_MS;
    }
    const about = { format, version: VERSION, owner, savedMs: now() };
    const head = { ...about, sha256: hash.digest("hex") };
    lines[0] = `${JSON.stringify(head)}\n`;
    return lines.join("");
  }

  /** @throws {SavedFileError | PrivateFileError} */
  #check(seen: Deno.FileInfo): void {
    const { path, bytesMax } = this.options;
    checkSeen(path, seen, "change");
    // Its first line is not counted when it is written.
    if (seen.size > bytesMax + HEAD_BYTES_MAX) throw tooLong(bytesMax);
  }

  /** @throws {SavedFileError} */
  #parse(text: string): Saved {
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    const { format, version, owner, savedMs, sha256 } = headOf(
      text.slice(0, Math.max(end, 0)),
    );
    if (format !== this.options.format) {
      throw new SavedFileError("it holds something else");
    }
    if (version !== VERSION) {
      throw new SavedFileError(
        `it has version ${version}, wanted ${VERSION} (of a newer tunnel?)`,
      );
    }
    const isWhole = typeof owner === "string" && typeof savedMs === "number" &&
      Math.abs(savedMs) <= TIME_MS_MAX && typeof sha256 === "string";
    if (!isWhole) {
      throw new SavedFileError("it is damaged: its first line says less");
    }
    if (sha256 !== createHash("sha256").update(body).digest("hex")) {
      throw new SavedFileError("it is damaged: its checksum is another one");
    }
    if (owner !== this.options.owner) {
      throw new SavedFileError(
        `it is of ${owner}, this is ${this.options.owner}`,
      );
    }
    const lines = body.split("\n");
    lines.pop();
    return { savedMs, items: lines.map((line) => JSON.parse(line)) };
  }

  #unusable(error: unknown): undefined {
    if (error instanceof Deno.errors.NotFound) return undefined;
    const { path, what, unusable, log, fields } = this.options;
    const problem = problemOf(error);
    log.warn(`Cannot use ${what} in ${path}: ${problem}; ${unusable}`, {
      code: "TUN906",
      ...fields,
    });
    return undefined;
  }
}

/** What `Date` can hold. */
const TIME_MS_MAX = 8.64e15;

/** Limit of the first line, with an owner of two names of 253 letters. */
const HEAD_BYTES_MAX = 1_024;

/** A damaged file. The text follows "Cannot use …: ". */
class SavedFileError extends Error {
  override readonly name = "SavedFileError";
}

function tooLong(bytesMax: number): SavedFileError {
  return new SavedFileError(`it would be longer than ${bytesMax} bytes`);
}

function headOf(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line));
  } catch {
    throw new SavedFileError("it is damaged: its first line is no JSON");
  }
}

/**
 * @throws {unknown} Errors that neither the file nor the machine has caused.
 */
function problemOf(error: unknown): string {
  if (error instanceof SavedFileError) return error.message;
  if (error instanceof PrivateFileError) {
    return error.message.replace(/^Cannot use [^:]*: /, "");
  }
  const isPlatforms = error instanceof Error && error.name in Deno.errors;
  if (isSystemError(error) || isPlatforms) return systemProblem(error);
  throw error;
}

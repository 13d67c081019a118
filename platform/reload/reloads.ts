/**
 * Files that are read again while the program runs: when they change, and on
 * request (SIGHUP).
 *
 * A new file that cannot be used leaves the old one in use, and that is
 * reported: in the log, in metrics and in the detail of readiness. It knows
 * neither the content of the files nor its users.
 *
 * @module
 */

import type { NamedTools } from "../program/tools.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../errors/internal_errors.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { FileError } from "../files/file_error.ts";
import { type FileWatch, watchFiles } from "../files/watch_files.ts";
import type { LabelledSeries } from "../metrics/metrics.ts";

/**
 * How long files may contradict each other before that is called a failure:
 * a certificate and its key are replaced one after the other.
 */
export const CONTRADICTION_MS = 2_000;

/** Timers of the platform wait no longer than 24.8 days. */
const LATER_MS_MAX = 24 * 3600_000;

/** A source that is read from files. */
export interface ReloadSource {
  /** For people and labels: one of the few words in the code. */
  readonly kind: string;
  readonly files: readonly string[];
  /**
   * Reads the files again and uses them.
   *
   * @returns What has changed, as a line for the log; absent when nothing has.
   * @throws {FileError} With the old ones still in use.
   */
  reload(): string | undefined;
  /** A usable certificate with a warning. */
  readonly warnings?: readonly string[];
}

/** What {@linkcode Reloads} needs. */
export interface ReloadsOptions extends NamedTools {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** For tests. */
  readonly watch?: typeof watchFiles;
}

/** The report of a reader of other files: an error, or that all is well. */
export type ReloadReport = (problem?: string) => void;

/** How a kind of files fares. */
interface State {
  readonly kind: string;
  /** The faults of the present files. */
  problem: string | undefined;
}

/** One source that is read here. */
interface Entry extends State {
  readonly source: ReloadSource;
  /** Set while the files may still be on their way. */
  waiting: Timer | undefined;
}

export class Reloads {
  readonly #entries: Entry[] = [];
  /** For files that other code reads. */
  readonly #followed: State[] = [];
  readonly #failures: LabelledSeries;
  readonly #successes: LabelledSeries;
  #watch: FileWatch | undefined;
  #isClosed = false;
  /** Called after every reload that changed something. */
  onChange: () => void = () => {};

  constructor(private readonly options: ReloadsOptions) {
    const { metrics, prefix } = options;
    this.#failures = metrics.labelled(
      "counter",
      `${prefix}reload_failures_total`,
      "New files that could not be used; the old ones stayed in use.",
      ["kind"],
    );
    this.#successes = metrics.labelled(
      "gauge",
      `${prefix}reload_last_success_timestamp_seconds`,
      "When files were last read and found good, as Unix time.",
      ["kind"],
    );
    metrics.computedLabelled(
      "gauge",
      `${prefix}reload_stale`,
      "1 while the files that stand there cannot be used and older ones are.",
      ["kind"],
      () => this.#stale(),
    );
  }

  /** Reads `source` again from now on; its present content counts as good. */
  add(source: ReloadSource): void {
    const { kind } = source;
    const entry = { kind, source, waiting: undefined, problem: undefined };
    this.#entries.push(entry);
    this.#failures.with(kind);
    this.#succeeded(entry);
    if (this.#watch !== undefined) this.start();
  }

  /**
   * For files that other code reads and logs about.
   *
   * @returns A function to call after each reading; the first reading counts as
   *   good.
   */
  follow(kind: string): ReloadReport {
    const state: State = { kind, problem: undefined };
    this.#followed.push(state);
    this.#failures.with(kind);
    this.#succeeded(state);
    return (problem) => {
      state.problem = problem;
      if (problem === undefined) this.#succeeded(state);
      else this.#failures.with(kind).add();
    };
  }

  /** Starts to watch, and checks once for changes until now. */
  start(): void {
    if (this.#isClosed) return;
    this.#watch?.close();
    const { timers, log, watch = watchFiles } = this.options;
    const files = new Set(this.#entries.flatMap(({ source }) => source.files));
    this.#watch = watch({
      files: [...files],
      timers,
      onFiles: (changed) => this.#onFiles(changed),
      onProblem: (line) => log.warn(line, { code: "TUN124" }),
    });
    this.check();
  }

  /** Looks for changes now; reports nothing where there are none. */
  check(): void {
    for (const entry of this.#entries) this.#try(entry);
  }

  /** At a user's request: reports the result for each source. */
  reload(): void {
    for (const entry of this.#entries) {
      if (this.#try(entry, true) !== "same") continue;
      this.options.log.info(
        `${entry.source.kind}: read again, nothing has changed`,
      );
    }
  }

  /** What readiness should show; empty when all is well. */
  get notes(): readonly string[] {
    return this.#states().flatMap(({ kind, problem }) =>
      problem === undefined ? [] : [
        `${kind}: the new file cannot be used, the old one stays in ` +
        "use; the log says why",
      ]
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#watch?.close();
    for (const { waiting } of this.#entries) waiting?.cancel();
  }

  #onFiles(changed: readonly string[]): void {
    for (const entry of this.#entries) {
      const isMeant = entry.source.files.some((file) => changed.includes(file));
      if (isMeant) this.#try(entry);
    }
  }

  /** @param isFinal Files that are not good now are a failure. */
  #try(entry: Entry, isFinal = false): "new" | "same" | "failed" {
    const { source } = entry;
    const { log } = this.options;
    let change: string | undefined;
    try {
      change = source.reload();
    } catch (error) {
      const isSlip = !(error instanceof FileError);
      // The others' files have changed as well, perhaps.
      if (isSlip) reportInternalError("file", error);
      if (isSlip) this.#failed(entry, INTERNAL_ERROR);
      else if (isFinal || error.goodFromMs !== undefined) {
        this.#failed(entry, error.message);
        this.#later(entry, error.goodFromMs);
      } else this.#wait(entry);
      return "failed";
    }
    entry.waiting?.cancel();
    entry.waiting = undefined;
    const wasBad = entry.problem !== undefined;
    entry.problem = undefined;
    this.#succeeded(entry);
    if (change === undefined) {
      if (wasBad) log.info(`${source.kind}: the files are good again`);
      return "same";
    }
    log.info(`${source.kind}: ${change}`);
    for (const warning of source.warnings ?? []) {
      log.warn(warning, { code: "TUN203" });
    }
    this.onChange();
    return "new";
  }

  #wait(entry: Entry): void {
    entry.waiting ??= this.options.timers.after(CONTRADICTION_MS, () => {
      entry.waiting = undefined;
      this.#try(entry, true);
    });
  }

  /** A file that will be good without being touched is looked at then. */
  #later(entry: Entry, goodFromMs: number | undefined): void {
    if (goodFromMs === undefined) return;
    const inMs = Math.max(CONTRADICTION_MS, goodFromMs - this.options.now());
    entry.waiting = this.options.timers.after(
      Math.min(inMs, LATER_MS_MAX),
      () => {
        entry.waiting = undefined;
        this.#try(entry, true);
      },
    );
  }

  #failed(entry: Entry, problem: string): void {
    entry.waiting?.cancel();
    entry.waiting = undefined;
    entry.problem = problem;
    this.#failures.with(entry.kind).add();
    this.options.log.error(`${problem}; the earlier content stays in use`, {
      code: "TUN124",
    });
  }

  #states(): readonly State[] {
    return [...this.#entries, ...this.#followed];
  }

  #succeeded({ kind }: State): void {
    const seconds = Math.floor(this.options.now() / 1000);
    this.#successes.with(kind).set(seconds);
  }

  /** Sources of one kind are stale together. */
  #stale(): Iterable<readonly [readonly string[], number]> {
    const stale = new Map<string, number>();
    for (const { kind, problem } of this.#states()) {
      const known = stale.get(kind) ?? 0;
      stale.set(kind, Math.max(known, problem === undefined ? 0 : 1));
    }
    return [...stale].map(([kind, value]) => [[kind], value] as const);
  }
}

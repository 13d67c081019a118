/**
 * A source whose last good state is kept on disk: a proxy that starts while the
 * source is away serves the last state, and says so.
 *
 * It wraps a source and passes on what that source says, without knowing where
 * it comes from. A copy that is damaged, of another place, or too long is not
 * used and does no harm.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { type Saved, SavedFile } from "../../platform/files/saved_file.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { SourceEntries } from "./changes.ts";
import type { Service, ServiceEndpoints } from "./model/model.ts";
import type {
  CatalogChange,
  CatalogPart,
  Sink,
  Source,
} from "./model/source.ts";

/** Longer documents are neither written nor read. */
export const COPY_BYTES_MAX: number = 64 * 1024 * 1024;

/** How long a source may be silent before its copy is served. */
export const COPY_SILENT_MS = 2_000;

/** A change is on disk so soon, together with those that follow it … */
export const COPY_SAVE_DELAY_MS = 2_000;

/** … unless the copy was written to just before. */
const COPY_INTERVAL_MS = 10_000;

/** What it needs from outside. */
export interface CachedSourceOptions extends Tools {
  readonly path: string;
  /** Where the source is, in words; a copy of another place is not used. */
  readonly place: string;
  /** For tests. */
  readonly now?: () => number;
}

/** The facts about a copy. Plain data. */
export interface CopyStatus {
  /** When the copy in use was stored, while the source has not spoken yet. */
  readonly recalledFrom?: string;
  /** The file, and why the newest state is not in it. */
  readonly kept: {
    readonly path: string;
    readonly problem?: string | undefined;
  };
}

/** Where the copy stands. */
type State =
  /** The source has sent nothing yet. */
  | { readonly kind: "waiting"; readonly timer: Timer }
  /** The copy is served; `savedMs`: it is of then. */
  | { readonly kind: "recalled"; readonly savedMs: number }
  /** The source has sent its own state. */
  | { readonly kind: "live" };

export class CachedSource implements Source, Sink {
  readonly name: string;
  readonly #path: string;
  readonly #timers: Timers;
  /** The whole state of the source. */
  readonly #entries = new SourceEntries();
  #state: State = { kind: "live" };
  #sink: Sink | undefined;
  readonly #file: SavedFile;
  #copy: Promise<Copy | undefined> = Promise.resolve(undefined);

  constructor(private readonly source: Source, options: CachedSourceOptions) {
    this.name = source.name;
    const { place, ...others } = options;
    this.#path = options.path;
    this.#timers = options.timers;
    this.#file = new SavedFile({
      ...others,
      format: "tunnel-catalog-copy",
      owner: `the source ${place}`,
      what: "the copy of a source",
      unusable: "nothing is known until the source answers",
      unkept: "started without the source, nothing would be known",
      bytesMax: COPY_BYTES_MAX,
      delayMs: COPY_SAVE_DELAY_MS,
      intervalMs: COPY_INTERVAL_MS,
      items: () => this.#items(),
      fields: { source: this.name },
    });
  }

  get copy(): CopyStatus {
    const { problem } = this.#file;
    return {
      ...this.#state.kind === "recalled"
        ? { recalledFrom: timeText(this.#state.savedMs) }
        : {},
      kept: { path: this.#path, problem },
    };
  }

  // --- A source to the catalog ------------------------------------------------

  async prepare(): Promise<void> {
    await this.source.prepare?.();
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#copy = this.#file.read().then((kept) => kept && copyOf(kept));
    const timer = this.#timers.after(
      COPY_SILENT_MS,
      () => this.#recall("it has sent nothing yet"),
    );
    this.#state = { kind: "waiting", timer };
    this.source.start(this);
  }

  async stop(): Promise<void> {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#state = { kind: "live" };
    await this.source.stop();
    await this.#file.close();
  }

  reconcile(): Promise<void> {
    return this.source.reconcile();
  }

  // --- A sink to the source ---------------------------------------------------

  set(part: CatalogPart): void {
    this.#entries.set(part);
    this.#sink!.set(part);
    this.#changed();
  }

  change(change: CatalogChange): void {
    this.#entries.change(change);
    this.#sink!.change(change);
    this.#changed();
  }

  repair(part: CatalogPart): void {
    this.#entries.set(part);
    this.#sink!.repair(part);
    this.#changed();
  }

  refused(problem: string): void {
    this.#sink!.refused(problem);
  }

  synced(): void {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    if (this.#state.kind === "recalled") {
      // Entries that only the copy has are gone.
      this.#sink!.set({
        services: [...this.#entries.services.values()],
        endpoints: [...this.#entries.endpoints]
          .map(([service, endpoints]) => ({ service, endpoints })),
      });
    }
    this.#state = { kind: "live" };
    this.#sink!.synced();
    this.#changed();
  }

  failed(problem: string, retryMs?: number): void {
    if (this.#state.kind === "waiting") {
      this.#state.timer.cancel();
      this.#recall(problem, retryMs);
    } else if (this.#state.kind === "recalled") {
      this.#sink!.failed(this.#inOldWords(problem), retryMs);
    } else {
      this.#sink!.failed(problem, retryMs);
    }
  }

  // --- The copy ---------------------------------------------------------------

  #recall(problem: string, retryMs?: number): void {
    unawaited(
      "catalog",
      this.#copy.then((copy) => {
        if (this.#state.kind !== "waiting") return;
        if (copy === undefined) return this.#sink!.failed(problem, retryMs);
        this.#state = { kind: "recalled", savedMs: copy.savedMs };
        this.#sink!.set(copy);
        this.#sink!.synced();
        this.#sink!.failed(this.#inOldWords(problem), retryMs);
      }),
    );
  }

  #inOldWords(problem: string): string {
    const savedMs = this.#state.kind === "recalled" ? this.#state.savedMs : 0;
    return `${problem}; what it said until ${timeText(savedMs)} is used, ` +
      `from ${this.#path}`;
  }

  #changed(): void {
    // A first list may come in parts: half of one must not be the copy.
    if (this.#state.kind === "live") this.#file.changed();
  }

  *#items(): Iterable<Item> {
    for (const service of this.#entries.services.values()) yield { service };
    for (const [service, endpoints] of this.#entries.endpoints) {
      yield { endpoints: { service, endpoints } };
    }
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** One line of the copy: one of the two. */
interface Item {
  readonly service?: Service;
  readonly endpoints?: ServiceEndpoints;
}

/** The content that was read. */
interface Copy extends Required<CatalogPart> {
  readonly savedMs: number;
}

/** The checksum was right: the writer is one of us. */
function copyOf({ savedMs, items }: Saved): Copy {
  const services: Service[] = [];
  const endpoints: ServiceEndpoints[] = [];
  for (const item of items as readonly Item[]) {
    if (item.service !== undefined) services.push(item.service);
    if (item.endpoints !== undefined) endpoints.push(item.endpoints);
  }
  return { savedMs, services, endpoints };
}

/**
 * The last good state of a source on disk: a proxy that starts while the source
 * is away serves that, and says so. When it does is `../source_input.ts`' business.
 *
 * A copy that is damaged, of another place, or too long is not used and does no
 * harm.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import { SavedFile } from "../../../platform/files/saved_file.ts";
import type { Endpoint, Service, ServiceEndpoints } from "./model.ts";
import type { CatalogPart } from "./source.ts";

/** Longer documents are neither written nor read. */
export const COPY_BYTES_MAX: number = 64 * 1024 * 1024;

/** A change is on disk so soon, together with those that follow it … */
export const COPY_SAVE_DELAY_MS = 2_000;

/** … unless the copy was written to just before. */
const COPY_INTERVAL_MS = 10_000;

/** What it needs from outside. */
export interface SourceCopyOptions extends Tools {
  /** The source's name. */
  readonly source: string;
  readonly path: string;
  /** Where the source is, in words; a copy of another place is not used. */
  readonly place: string;
  /** For tests. */
  readonly now?: () => number;
}

/** What is kept; keys are `namespace/name`. */
interface Kept {
  readonly services: ReadonlyMap<string, Service>;
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
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

export class SourceCopy {
  readonly #file: SavedFile;
  #entries: Kept | undefined;
  #savedMs = 0;
  /** It is served in the place of the source. */
  isServed = false;

  constructor(private readonly options: SourceCopyOptions) {
    const { place, source, ...others } = options;
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
      items: () => itemsOf(this.#entries!),
      fields: { source },
    });
  }

  get status(): CopyStatus {
    const { problem } = this.#file;
    return {
      ...this.isServed ? { recalledFrom: this.#savedText } : {},
      kept: { path: this.options.path, problem },
    };
  }

  /** What was kept, if it can be used. @param entries Are kept from now on. */
  async open(
    entries: Kept,
  ): Promise<Required<CatalogPart> | undefined> {
    this.#entries = entries;
    const saved = await this.#file.read();
    if (saved === undefined) return undefined;
    this.#savedMs = saved.savedMs;
    // The checksum was right: the writer is one of us.
    const items = saved.items as readonly Item[];
    return {
      services: items.flatMap(({ service }) => service ?? []),
      endpoints: items.flatMap(({ endpoints }) => endpoints ?? []),
    };
  }

  /** The entries are others, and whole. */
  changed(): void {
    this.#file.changed();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** A problem of the source, while this is served. */
  inOldWords(problem: string): string {
    return `${problem}; what it said until ${this.#savedText} is used, ` +
      `from ${this.options.path}`;
  }

  get #savedText(): string {
    return new Date(this.#savedMs).toISOString();
  }
}

/** One line of the copy: one of the two. */
interface Item {
  readonly service?: Service;
  readonly endpoints?: ServiceEndpoints;
}

function* itemsOf({ services, endpoints }: Kept): Iterable<Item> {
  for (const service of services.values()) yield { service };
  for (const [service, list] of endpoints) {
    yield { endpoints: { service, endpoints: list } };
  }
}

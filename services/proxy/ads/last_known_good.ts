/**
 * What discovery has said, on disk: what a proxy serves when it starts and no
 * server answers.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { Recalled } from "../../ads/ads_client.ts";
import { SavedFile } from "../../../platform/files/saved_file.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { type ResourceKind, TYPE_URLS } from "../../../proto/xds/resource.ts";

/** Longer files are neither written nor read. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** A change is on disk so soon … */
export const LAST_GOOD_SAVE_DELAY_MS = 1_000;

/** … unless it was written to just before. */
export const SAVE_INTERVAL_MS = 10_000;

/** What it needs from outside. */
export interface LastKnownGoodOptions {
  readonly path: string;
  /** Whose it is; another one's is not used. */
  readonly node: string;
  readonly timers: Timers;
  readonly log: Log;
  /** {@linkcode FILE_BYTES_MAX} unless given. */
  readonly bytesMax?: number;
}

/** What was read. */
export interface Remembered {
  readonly savedMs: number;
  readonly resources: readonly Recalled[];
}

export class LastKnownGood {
  readonly path: string;
  readonly #file: SavedFile;
  #collect: () => readonly Recalled[] = () => [];

  constructor(
    { path, node, timers, log, bytesMax = FILE_BYTES_MAX }:
      LastKnownGoodOptions,
  ) {
    this.path = path;
    this.#file = new SavedFile({
      path,
      format: "tunnel-discovery-state",
      owner: `the node ${node}`,
      what: "what discovery says",
      unusable: "services are served when a discovery server answers",
      unkept: "a proxy that starts without a server will serve what was kept " +
        "before",
      bytesMax,
      delayMs: LAST_GOOD_SAVE_DELAY_MS,
      intervalMs: SAVE_INTERVAL_MS,
      items: () => itemsOf(this.#collect()),
      log,
      timers,
    });
  }

  /** Why the newest state is not on disk; `undefined`: it is, or will be. */
  get problem(): string | undefined {
    return this.#file.problem;
  }

  /** Reads the file. Whatever is wrong with it is said to the log. */
  async load(): Promise<Remembered | undefined> {
    const kept = await this.#file.read();
    return kept && {
      savedMs: kept.savedMs,
      resources: kept.items.flatMap(recalledOf),
    };
  }

  /**
   * There is something new.
   *
   * @param collect All there is at the moment of writing.
   */
  changed(collect: () => readonly Recalled[]): void {
    this.#collect = collect;
    this.#file.changed();
  }

  /** Writes what is not written yet. */
  close(): Promise<void> {
    return this.#file.close();
  }
}

type Item = readonly [
  kind: ResourceKind,
  name: string,
  version: string,
  value: string,
];

function* itemsOf(resources: readonly Recalled[]): Iterable<Item> {
  for (const { kind, name, version, value } of resources) {
    yield [kind, name, version, Buffer.from(value).toString("base64")];
  }
}

/** Of kinds that a newer program knows there may be some. */
function recalledOf(item: unknown): readonly Recalled[] {
  const [kind, name, version, value] = item as Item;
  const typeUrl = Object.hasOwn(TYPE_URLS, kind) ? TYPE_URLS[kind] : undefined;
  if (typeUrl === undefined) return [];
  const bytes = new Uint8Array(Buffer.from(value, "base64"));
  return [{ kind, name, version, typeUrl, value: bytes }];
}

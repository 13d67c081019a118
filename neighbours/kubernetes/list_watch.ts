/**
 * A copy of a Kubernetes collection that follows the original: lists it, then
 * watches what changes, and starts over when the API server has forgotten the
 * version.
 *
 * Whatever happens to the API server, the last good copy stays and is served;
 * the reader receives only differences. After a new list these are found by
 * comparison, so every missed change is made up for.
 *
 * Reading order: `ListWatch.start`, `#follow`, `#list`, `#watch`.
 *
 * @module
 */

import { worldly } from "../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../platform/time/supervise.ts";
import type { KubernetesClient, RequestOptions } from "./client.ts";
import { codeOf, isKubernetesTrouble, KubernetesError } from "./errors.ts";
import type { KubernetesObject, ObjectList } from "./objects.ts";
import { isNewer, type ObjectChange, ObjectCopy } from "./object_copy.ts";
import { type WatchEvent, watchEvents } from "./watch_stream.ts";

/** Objects per page, as kubectl and client-go have it. */
const PAGE_OBJECTS = 500;

/** How long the API server is asked to keep a watch; a tenth of it is jitter. */
const WATCH_SECONDS = 290;

/**
 * A silent watch is given up after this time. API servers send a bookmark each
 * minute; a dead connection sends none.
 */
export const LIST_SILENCE_MS = 120_000;

/** Longest wait after failures. */
export const LIST_RETRY_CAP_MS = 30_000;

/** Lists in a row that may be too old before that is reported as trouble. */
const FORGOTTEN_MAX = 6;

/** A collection that grows beyond this is not held. */
export const OBJECTS_MAX = 200_000;

export type ListWatchClient = Pick<KubernetesClient, "get" | "stream">;

export interface ListWatchOptions<T> {
  readonly client: ListWatchClient;
  /** The collection's path; see `pathOf`. */
  readonly path: string;
  /** `labelSelector`, `fieldSelector`. */
  readonly query?: Readonly<Record<string, string>>;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** {@linkcode LIST_RETRY_CAP_MS} unless given. */
  readonly retryCapMs?: number;
  /** All that is new at once; never empty. */
  readonly onChanges: (changes: readonly ObjectChange<T>[]) => void;
  /** The copy is complete: after the first list, and after each later one. */
  readonly onSynced?: () => void;
  /** A watch is open: from here on no change is missed. */
  readonly onFollowing?: () => void;
  /** It is not being followed now; the next attempt comes in `retryMs`. */
  readonly onProblem?: (error: Error, retryMs: number) => void;
}

export class ListWatch<T extends KubernetesObject> {
  readonly #copy = new ObjectCopy<T>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** The version up to which all is known; `undefined`: none is, so list. */
  #version: string | undefined;
  #isSynced = false;
  #isStale = true;
  /** Lists in a row that the API server called too old before their watch spoke. */
  #forgotten = 0;

  constructor(private readonly options: ListWatchOptions<T>) {}

  /** The last good copy, by `namespace/name`. */
  get objects(): ReadonlyMap<string, T> {
    return this.#copy.objects;
  }

  /** Whether there was ever a whole list. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Whether the original may have changed without our knowing. */
  get isStale(): boolean {
    return this.#isStale;
  }

  start(): void {
    const { timers, random, retryCapMs, onProblem } = this.options;
    this.#running ??= supervise({
      timers,
      random,
      capMs: retryCapMs ?? LIST_RETRY_CAP_MS,
      signal: this.#stopping.signal,
      run: (run) => this.#follow(run),
      problemOf: (error) => worldly("task", error, isKubernetesTrouble),
      onProblem: (error, retryMs) => {
        this.#isStale = true;
        onProblem?.(error, retryMs);
      },
    });
  }

  /** Ends requests and timers; no callback follows. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #follow(run: Run): Promise<Next> {
    this.#version ??= await this.#list();
    try {
      await this.#watch(this.#version, run);
    } catch (error) {
      // An API server that has just started may call its own list too old, until
      // its cache is warm. Listing again misses nothing.
      if (!isTooOld(error) || ++this.#forgotten > FORGOTTEN_MAX) throw error;
      return this.#forgotten === 1 ? "again" : "backoff";
    }
    this.#forgotten = 0;
    // Watches end all the time; only one that ends at once is worth a wait.
    return run.isYoung ? "backoff" : "again";
  }

  // --- List ----------------------------------------------------------------------

  /** @returns The version that the list is of. */
  async #list(): Promise<string> {
    const { client, path, query } = this.options;
    const { version, items } = await listPages<T>(client, path, {
      query,
      signal: this.#stopping.signal,
      // `#follow` asks again, and says that it has to.
      isRepeatable: false,
    });
    const changes = this.#copy.replace(items);
    this.#isSynced = true;
    if (changes.length > 0) this.options.onChanges(changes);
    this.options.onSynced?.();
    return version;
  }

  // --- Watch ---------------------------------------------------------------------

  /** One watch, to its end. What it says moves `#version` on. */
  async #watch(from: string, run: Run): Promise<void> {
    const { timers } = this.options;
    const ending = new AbortController();
    const { signal: stopping } = this.#stopping;
    if (stopping.aborted) return;
    const onStop = () => ending.abort();
    stopping.addEventListener("abort", onStop);
    let silence: Timer | undefined;
    const listen = () => {
      silence?.cancel();
      silence = timers.after(LIST_SILENCE_MS, () => ending.abort());
    };
    try {
      const body = await this.#open(from, ending.signal);
      run.opened();
      listen();
      this.#isStale = false;
      this.options.onFollowing?.();
      for await (const event of watchEvents<T>(body, ending.signal)) {
        if (this.#stopping.signal.aborted) return;
        listen();
        this.#onEvent(event);
        this.#forgotten = 0;
      }
    } catch (error) {
      // The reader had an internal error: it receives the whole copy again.
      if (!isKubernetesTrouble(error)) {
        this.#version = undefined;
        throw error;
      }
      // Too old to resume from (410), or an unknown message.
      if (silence !== undefined || isTooOld(error)) this.#version = undefined;
      throw error;
    } finally {
      silence?.cancel();
      stopping.removeEventListener("abort", onStop);
      ending.abort();
    }
  }

  #open(
    from: string,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const { client, path, query, random } = this.options;
    const seconds = Math.round(WATCH_SECONDS * (1 + random() / 10));
    return client.stream(path, {
      query: {
        ...query,
        watch: "true",
        resourceVersion: from,
        allowWatchBookmarks: "true",
        timeoutSeconds: `${seconds}`,
      },
      signal,
      isRepeatable: false,
    });
  }

  #onEvent(event: WatchEvent<T>): void {
    if (event.type === "ERROR") {
      const { code = 0, reason = "", message = "" } = event.status;
      throw new KubernetesError(code, reason, `The watch ended: ${message}`);
    }
    if (event.type !== "BOOKMARK") this.#apply(event);
    const version = event.object.metadata.resourceVersion ?? "";
    if (version !== "" && isNewer(version, this.#version!)) {
      this.#version = version;
    }
  }

  #apply(
    event: { readonly type: "ADDED" | "MODIFIED" | "DELETED"; object: T },
  ): void {
    const change = event.type === "DELETED"
      ? this.#copy.remove(event.object)
      : this.#copy.put(event.object);
    if (change === undefined) return;
    if (this.#copy.objects.size > OBJECTS_MAX) {
      throw tooMany(this.options.path);
    }
    this.options.onChanges([change]);
  }
}

/**
 * All of a collection, page by page; all in one where the pages went out of date
 * while they were read.
 *
 * @returns With the version that the list is of.
 * @throws {KubernetesError | NeighbourConfigError}
 */
export async function listPages<T>(
  client: Pick<ListWatchClient, "get">,
  path: string,
  request: RequestOptions,
): Promise<{ readonly version: string; readonly items: readonly T[] }> {
  const items: T[] = [];
  let next = "";
  let limit = PAGE_OBJECTS;
  while (true) {
    let page: ObjectList<T>;
    try {
      page = await client.get<ObjectList<T>>(path, {
        ...request,
        query: {
          ...request.query,
          ...limit === 0 ? {} : { limit: `${limit}` },
          ...next === "" ? {} : { continue: next },
        },
      });
    } catch (error) {
      if (codeOf(error) !== 410 || next === "") throw error;
      items.length = limit = 0;
      next = "";
      continue;
    }
    items.push(...page.items ?? []);
    if (items.length > OBJECTS_MAX) throw tooMany(path);
    next = page.metadata?.continue ?? "";
    if (next === "") {
      return { items, version: page.metadata?.resourceVersion ?? "" };
    }
  }
}

/** 400 is what etcd's compaction looks like through some servers. */
function isTooOld(error: unknown): boolean {
  return [400, 410].includes(codeOf(error) ?? 0);
}

function tooMany(path: string): KubernetesError {
  return new KubernetesError(
    0,
    "TooMany",
    `Cannot hold ${path}: it has more than ${OBJECTS_MAX} objects; narrow it ` +
      "by a selector",
  );
}

/**
 * A copy of a Kubernetes collection that follows the original: lists it, then
 * watches what changes, and starts over when the API server has forgotten
 * where it was.
 *
 * Whatever happens to the API server, the last copy that was good stays and is
 * served; who reads it is told only of differences. After a new list those are
 * found by comparing, so nothing that was missed stays missed.
 *
 * Reading order: `ListWatch.start`, `#follow`, `#list`, `#watch`.
 *
 * @module
 */

import { worldly } from "../../platform/errors/internal_errors.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { pause } from "../../platform/time/pause.ts";
import type { RequestOptions } from "./client.ts";
import { KubernetesConfigError, KubernetesError } from "./errors.ts";
import type { KubernetesObject, ObjectList } from "./objects.ts";
import { isNewer, type ObjectChange, ObjectCopy } from "./object_copy.ts";
import { type WatchEvent, watchEvents } from "./watch_stream.ts";

/** Objects per page, as kubectl and client-go have it. */
const PAGE_OBJECTS = 500;

/** How long the API server is asked to keep a watch; a tenth of it is jitter. */
const WATCH_SECONDS = 290;

/**
 * A watch that says nothing for so long is given up. API servers send a
 * bookmark a minute; a connection that is dead without a word sends none.
 */
export const SILENCE_MS = 120_000;

/** A watch that ends sooner was no success: the next one waits. */
export const YOUNG_MS = 1_000;

/** Longest wait after failures. */
export const RETRY_CAP_MS = 30_000;

/** A collection that grows beyond this is not held. */
export const OBJECTS_MAX = 200_000;

/** What is asked of `KubernetesClient`. */
export interface ListWatchClient {
  get<T>(path: string, options: RequestOptions): Promise<T>;
  stream(
    path: string,
    options: RequestOptions & { readonly signal: AbortSignal },
  ): Promise<ReadableStream<Uint8Array>>;
}

/** See the module description. */
export interface ListWatchOptions<T> {
  readonly client: ListWatchClient;
  /** Of the collection; see `pathOf`. */
  readonly path: string;
  /** `labelSelector`, `fieldSelector`. */
  readonly query?: Readonly<Record<string, string>>;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** All that is new at once; never empty. */
  readonly onChanges: (changes: readonly ObjectChange<T>[]) => void;
  /** The copy is complete: after the first list, and after each later one. */
  readonly onSynced?: () => void;
  /** A watch is open: from here on nothing is missed. */
  readonly onFollowing?: () => void;
  /** It is not being followed now; the next attempt comes in `retryMs`. */
  readonly onProblem?: (error: Error, retryMs: number) => void;
}

/** See the module description. */
export class ListWatch<T extends KubernetesObject> {
  readonly #options: ListWatchOptions<T>;
  readonly #copy = new ObjectCopy<T>();
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** Up to where all is known; `undefined`: nothing is, so list. */
  #version: string | undefined;
  #isSynced = false;
  #isStale = true;

  constructor(options: ListWatchOptions<T>) {
    this.#options = options;
    const { random } = options;
    this.#backoff = new Backoff({ capMs: RETRY_CAP_MS, random });
  }

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
    this.#running ??= this.#follow();
  }

  /** Ends requests and timers; no callback follows. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#version ??= await this.#list();
        await this.#watch(this.#version);
      } catch (error) {
        if (signal.aborted) return;
        await this.#pause(worldly("task", error, isOfTheWorld));
      }
    }
  }

  // --- List ----------------------------------------------------------------------

  /** @returns The version that the list is of. */
  async #list(): Promise<string> {
    const { version, items } = await this.#pages();
    const changes = this.#copy.replace(items);
    this.#isSynced = true;
    if (changes.length > 0) this.#options.onChanges(changes);
    this.#options.onSynced?.();
    return version;
  }

  async #pages(): Promise<{ version: string; items: T[] }> {
    const items: T[] = [];
    let next = "";
    let limit = PAGE_OBJECTS;
    while (true) {
      let page: ObjectList<T>;
      try {
        page = await this.#options.client.get<ObjectList<T>>(
          this.#options.path,
          {
            query: {
              ...this.#options.query,
              ...limit === 0 ? {} : { limit: `${limit}` },
              ...next === "" ? {} : { continue: next },
            },
            signal: this.#stopping.signal,
            // `#follow` asks again, and says that it has to.
            isRepeatable: false,
          },
        );
      } catch (error) {
        // The pages went out of date while they were read. All in one, then.
        if (!(error instanceof KubernetesError && error.code === 410)) {
          throw error;
        }
        if (next === "") throw error;
        items.length = limit = 0;
        next = "";
        continue;
      }
      items.push(...page.items ?? []);
      if (items.length > OBJECTS_MAX) throw tooMany(this.#options.path);
      next = page.metadata?.continue ?? "";
      if (next === "") {
        return { items, version: page.metadata?.resourceVersion ?? "" };
      }
    }
  }

  // --- Watch ---------------------------------------------------------------------

  /** One watch, to its end. What it says moves `#version` on. */
  async #watch(from: string): Promise<void> {
    const { timers } = this.#options;
    const ending = new AbortController();
    const { signal: stopping } = this.#stopping;
    if (stopping.aborted) return;
    const onStop = () => ending.abort();
    stopping.addEventListener("abort", onStop);
    let silence: Silence | undefined;
    let openedMs: number | undefined;
    try {
      const body = await this.#open(from, ending.signal);
      openedMs = timers.now();
      silence = new Silence(timers, () => ending.abort());
      this.#isStale = false;
      this.#options.onFollowing?.();
      for await (const event of watchEvents<T>(body, ending.signal)) {
        if (this.#stopping.signal.aborted) return;
        silence.broken();
        this.#onEvent(event);
      }
    } catch (error) {
      // Whoever is told had a slip: all of it is told again.
      if (!isOfTheWorld(error)) {
        this.#version = undefined;
        throw error;
      }
      // Too old to go on from (410), or what was said is unknown.
      if (openedMs !== undefined || isTooOld(error)) this.#version = undefined;
      throw error;
    } finally {
      silence?.end();
      stopping.removeEventListener("abort", onStop);
      ending.abort();
      if (openedMs !== undefined && timers.now() - openedMs >= YOUNG_MS) {
        this.#backoff.reset();
      }
    }
    // Watches end all the time; only one that ends at once is worth a wait.
    if (timers.now() - openedMs < YOUNG_MS) {
      await pause(
        this.#options.timers,
        this.#backoff.nextMs(),
        this.#stopping.signal,
      );
    }
  }

  #open(
    from: string,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const { client, path, query, random } = this.#options;
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
      throw tooMany(this.#options.path);
    }
    this.#options.onChanges([change]);
  }

  async #pause(error: Error): Promise<void> {
    this.#isStale = true;
    const retryMs = this.#backoff.nextMs();
    this.#options.onProblem?.(error, retryMs);
    await pause(this.#options.timers, retryMs, this.#stopping.signal);
  }
}

/** Ends a watch of which nothing is heard. */
class Silence {
  readonly #timers: Timers;
  readonly #onSilence: () => void;
  #timer: Timer;

  constructor(timers: Timers, onSilence: () => void) {
    this.#timers = timers;
    this.#onSilence = onSilence;
    this.#timer = timers.after(SILENCE_MS, onSilence);
  }

  broken(): void {
    this.#timer.cancel();
    this.#timer = this.#timers.after(SILENCE_MS, this.#onSilence);
  }

  end(): void {
    this.#timer.cancel();
  }
}

function isOfTheWorld(error: unknown): error is Error {
  return error instanceof KubernetesError ||
    error instanceof KubernetesConfigError;
}

/** 400 is what etcd's compaction looks like through some servers. */
function isTooOld(error: Error): boolean {
  return error instanceof KubernetesError &&
    (error.code === 410 || error.code === 400);
}

function tooMany(path: string): KubernetesError {
  return new KubernetesError(
    0,
    "TooMany",
    `Cannot hold ${path}: it has more than ${OBJECTS_MAX} objects; narrow it ` +
      "by a selector",
  );
}

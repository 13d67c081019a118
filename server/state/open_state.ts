/**
 * Opens the state of a server, or of a command that works on it: records in a
 * store, beside a directory for what belongs to this machine alone.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { orAborted, withDeadline } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type {
  SealingKeySource,
  StoreConnection,
  StoreLocation,
} from "../../neighbours/store/store_connection.ts";
import type { ServerOptions } from "../options.ts";
import {
  OPEN_TIMEOUT_MS,
  RemoteStore,
} from "../../neighbours/store/remote_store.ts";
import {
  readSealingKey,
  type SealingKey,
} from "../../neighbours/store/sealing.ts";
import {
  AUTHORITY_ROLES,
  DirectoryStore,
} from "../../neighbours/store/directory_store.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import {
  StoreAwayError,
  StoreError,
} from "../../neighbours/store/store_error.ts";
import {
  checkFormat,
  FORMAT_TEXT,
} from "../../neighbours/store/directory_content.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { shownGauge } from "../metrics/metric_families.ts";

/** A state that is open. */
export interface OpenState<Content> {
  readonly store: Store;
  /** What a start reads of it. */
  readonly content: Content;
  /**
   * The data of this machine alone; the store itself if that is a directory.
   */
  readonly local: DirectoryStore;
  /** It was made just now. */
  readonly isNew: boolean;
}

/** The state to open. */
export interface StateSource {
  readonly connection: StoreConnection;
  /** What keys of authorities are encrypted with; absent: nothing. */
  readonly key?: SealingKeySource | undefined;
  /** One line: the place is away, or back. */
  readonly warn: (line: string) => void;
}

/** A start asks again so much later. */
const AGAIN_MS = 250;

/**
 * Opens the state, or makes it on the first start of the first server. A place
 * that goes meanwhile, as one does that is started anew, is asked again.
 *
 * @param stateDirectory Directory for what belongs to this machine alone.
 * @param fill Writes the content of a new state.
 * @param load Reads what a start needs.
 * @throws {StoreError} When it is there and not whole. Never makes a new CA in
 *   place of one that was lost.
 * @throws {StoreAwayError} After {@linkcode OPEN_TIMEOUT_MS}.
 */
export async function openOrCreateState<Content>(
  source: StateSource,
  stateDirectory: string,
  fill: (transaction: StoreTransaction) => Promise<void>,
  load: (store: Store) => Promise<Content>,
): Promise<OpenState<Content>> {
  const { connection } = source;
  const key = await readSealingKey(source.key);
  if (connection.kind === "directory") {
    const { root } = connection;
    const { state: store, isNew } = await DirectoryStore.openOrCreate(
      root,
      fill,
      key,
    );
    const local = root === stateDirectory
      ? store
      : await DirectoryStore.openLocal(stateDirectory);
    return { store, local, isNew, content: await load(store) };
  }
  if (key === undefined) {
    source.warn(
      `keys of the CA are in ${connection.name} as they are: every user who can read ` +
        "them there can issue certificates; --state-key-file encrypts them",
    );
  }
  const local = await DirectoryStore.openLocal(stateDirectory);
  const untilMs = systemTimers.now() + OPEN_TIMEOUT_MS;
  const store = await openRemote(source, key);
  let wentLast: StoreAwayError | undefined;
  const make = async (signal: AbortSignal): Promise<OpenState<Content>> => {
    for (let isNew = false;;) {
      try {
        isNew = await createState(store, fill) || isNew;
        await checkState(store);
        return { store, local, isNew, content: await load(store) };
      } catch (error) {
        if (!(error instanceof StoreAwayError)) throw error;
        wentLast = error;
        await pause(systemTimers, AGAIN_MS, signal);
        if (signal.aborted) throw error;
      }
    }
  };
  try {
    return await withDeadline({
      timers: systemTimers,
      timeoutMs: Math.max(0, untilMs - systemTimers.now()),
      late: () =>
        wentLast ?? new StoreAwayError(
          `Cannot open the state in ${connection.name}: it has not answered ` +
            `within ${OPEN_TIMEOUT_MS / 1_000} s`,
        ),
    }, (signal) => orAborted(make(signal), signal));
  } catch (error) {
    unawaited("task", store.close());
    throw error;
  }
}

/**
 * Opens a state that a server has made.
 *
 * @throws {StoreError} When there is none, or it is not whole.
 */
export async function openExistingState(
  source: StateSource,
): Promise<Store> {
  const { connection } = source;
  const key = await readSealingKey(source.key);
  if (connection.kind === "directory") {
    return await DirectoryStore.open(connection.root, key);
  }
  const store = await openRemote(source, key);
  try {
    await checkState(store);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Opens a place for a state that is to be copied there; not a directory.
 *
 * @throws {StoreError}
 */
export async function openPlace(source: StateSource): Promise<Store> {
  return await openRemote(source, await readSealingKey(source.key));
}

async function openRemote(
  { connection, warn }: StateSource,
  key: SealingKey | undefined,
): Promise<RemoteStore> {
  if (connection.kind === "directory") {
    throw new TypeError("A directory has no place of records behind it");
  }
  return await RemoteStore.open({
    store: connection.place(),
    key,
    timers: systemTimers,
    wallClock: Date.now,
    random: Math.random,
    warn,
  });
}

/** The place of a server's state; `undefined`: it has none. */
export function stateLocationOf(
  { state, agents }: Pick<ServerOptions, "state" | "agents">,
): StoreLocation | undefined {
  if (state !== undefined) return state;
  const root = agents.identity?.stateDirectory;
  return root === undefined ? undefined : { kind: "directory", root };
}

// How a state that is not on this machine is made, once, by whichever server is
// first; and recognised, so that no second authority takes the place of one that
// was lost.

/** What the state is; written last. */
export const FORMAT_RECORD = "format/state.json";

/** There while a state is copied here; see `state_copy.ts`. */
export const COPYING_RECORD = "format/copying.json";

/** Makes the state if there is none. @returns Whether it did. @throws {StoreError} */
export function createState(
  store: Store,
  fill: (transaction: StoreTransaction) => Promise<void>,
): Promise<boolean> {
  return store.transact(async (change) => {
    if (await change.has(FORMAT_RECORD)) return false;
    if (await change.has(COPYING_RECORD)) {
      throw new StoreError(
        `Cannot use ${store.noun}: a state is being copied there, or that was ` +
          `interrupted (${
            store.where(COPYING_RECORD)
          }); end it with \`tunnel ` +
          "state copy`",
      );
    }
    for (const folder of ["tokens", "nodes"]) {
      const [found] = await change.list(folder);
      if (found !== undefined) throw incomplete(store, `${folder}/${found}`);
    }
    // When a change fails, another server may be about to finish its own: then
    // its authority counts.
    if (!await change.has(AUTHORITY_ROLES)) await fill(change);
    await change.create(FORMAT_RECORD, FORMAT_TEXT);
    return true;
  });
}

/** Everything is there: from now on it is a state. @throws {StoreError} */
export function finishCopy(store: Store): Promise<void> {
  return store.transact(async (change) => {
    await change.put(FORMAT_RECORD, FORMAT_TEXT);
    await change.remove(COPYING_RECORD);
  });
}

/** Whether a state is there that is whole. @throws {StoreError} */
export async function hasState(store: Store): Promise<boolean> {
  return await store.look(FORMAT_RECORD) !== undefined;
}

/** @throws {StoreError} When there is no state, or one that is not ours. */
export async function checkState(store: Store): Promise<void> {
  if (!await hasState(store)) {
    throw new StoreError(
      `Cannot use ${store.noun}: there is no identity in it (no ` +
        `${
          store.where(FORMAT_RECORD)
        }); start \`tunnel server\` with the same ` +
        "--state first",
    );
  }
  const where = store.where(FORMAT_RECORD);
  await checkFormat(store, FORMAT_RECORD, "state", where);
}

function incomplete(store: Store, found: string): StoreError {
  return new StoreError(
    `Cannot use ${store.noun}: it holds ${store.where(found)} but no ` +
      `${store.where(FORMAT_RECORD)}, so it is not (or no longer) whole; ` +
      `restore ${store.noun} from a backup, or name another place with ` +
      "--state. No new CA was made",
  );
}

// The metrics and events of a state: whether it can be reached, and
// since when not.

/** Adds what can be seen of it. */
export function watchOutages(
  metrics: MetricRegistry,
  engine: Store,
  nowMs: () => number = Date.now,
): void {
  shownGauge(
    metrics,
    "state_reachable",
    "Whether the state that servers have in common can be reached.",
    () => engine.outage === undefined ? 1 : 0,
  );
  shownGauge(
    metrics,
    "state_stale_seconds",
    "How long it could not be reached; 0: what is known here is current.",
    () => secondsAway(engine, nowMs()),
  );
}

/** Lines for `/readyz?verbose`: links go on, so it is no reason not to be ready. */
export function outageNotes(
  engine: Store,
  nowMs: () => number = Date.now,
): readonly string[] {
  const { outage } = engine;
  if (outage === undefined) return [];
  return [
    `${engine.noun} is away for ${secondsAway(engine, nowMs())} s: ` +
    `${outage.why}; no node can join and nothing is changed`,
  ];
}

function secondsAway({ outage }: Store, nowMs: number): number {
  if (outage === undefined) return 0;
  // The clock may have been set back.
  return Math.max(0, Math.round((nowMs - outage.sinceMs) / 1_000));
}

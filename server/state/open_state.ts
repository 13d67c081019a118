/**
 * Opens the state of a server, or of a command that works on it: records in a
 * store, beside the directory of what is this machine's alone.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { SealingKeySource } from "../../neighbours/store/store_location.ts";
import type { StoreLocation } from "../../neighbours/store/store_location.ts";
import type { ServerOptions } from "../options.ts";
import { checkState, createState } from "./state_creation.ts";
import {
  OPEN_TIMEOUT_MS,
  RemoteStore,
} from "../../neighbours/store/remote_store.ts";
import type { Place } from "../../neighbours/store/place.ts";
import {
  readSealingKey,
  type SealingKey,
} from "../../neighbours/store/sealing.ts";
import type { StoreConnection } from "../../neighbours/store/store_connection.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import { StoreAwayError } from "../../neighbours/store/store_error.ts";

/** A state that is open. */
export interface OpenState {
  readonly engine: Store;
  /** What is this machine's alone; the store itself if that is a directory. */
  readonly local: DirectoryStore;
  /** It was made just now. */
  readonly isNew: boolean;
}

/** What is to be opened. */
export interface StateSource {
  readonly connection: StoreConnection;
  /** What keys of authorities are encrypted with; absent: nothing. */
  readonly key?: SealingKeySource;
  /** One line: the place is away, or back. */
  readonly warn: (line: string) => void;
}

/**
 * Opens the state, or makes it on the first start of the first server.
 *
 * @param stateDirectory What is this machine's alone.
 * @param fill Writes what a new state holds.
 * @throws {StoreError} When it is there and not whole. Never makes a new CA in
 *   place of one that was lost.
 */
export async function openOrCreateState(
  source: StateSource,
  stateDirectory: string,
  fill: (transaction: StoreTransaction) => Promise<void>,
): Promise<OpenState> {
  const { connection } = source;
  const key = await readSealingKey(source.key);
  if (connection.kind === "directory") {
    const { root } = connection;
    const { state, isNew } = await DirectoryStore.openOrCreate(
      root,
      fill,
      key,
    );
    const local = root === stateDirectory
      ? state
      : await DirectoryStore.openLocal(stateDirectory);
    return { engine: state, local, isNew };
  }
  if (key === undefined) {
    source.warn(
      `keys of the CA are in ${connection.name} as they are: whoever can read ` +
        "them there can issue certificates; --state-key-file encrypts them",
    );
  }
  const local = await DirectoryStore.openLocal(stateDirectory);
  const untilMs = systemTimers.now() + OPEN_TIMEOUT_MS;
  const engine = await openRemote(source, key);
  const making = async () => {
    const isNew = await createState(engine, fill);
    await checkState(engine);
    return { engine, local, isNew };
  };
  try {
    return await within({
      timers: systemTimers,
      timeoutMs: Math.max(0, untilMs - systemTimers.now()),
      late: () =>
        new StoreAwayError(
          `Cannot open the state in ${connection.name}: it has not answered ` +
            `within ${OPEN_TIMEOUT_MS / 1_000} s`,
        ),
    }, making());
  } catch (error) {
    unawaited("task", engine.close());
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
  const engine = await openRemote(source, key);
  try {
    await checkState(engine);
    return engine;
  } catch (error) {
    await engine.close();
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
  return await RemoteStore.open({
    store: await storeOf(connection),
    key,
    timers: systemTimers,
    wallClock: Date.now,
    random: Math.random,
    warn,
  });
}

/** Loaded when wanted: most servers have a directory. */
async function storeOf(connection: StoreConnection): Promise<Place> {
  const tools = { timers: systemTimers, random: Math.random };
  switch (connection.kind) {
    case "directory":
      throw new TypeError("A directory is no store of its own");
    case "etcd": {
      const { EtcdPlace } = await import(
        "../../neighbours/store/etcd_place.ts"
      );
      return new EtcdPlace({ ...connection, ...tools });
    }
    case "kubernetes": {
      const { KubernetesPlace } = await import(
        "../../neighbours/store/kubernetes_place.ts"
      );
      return new KubernetesPlace({ ...connection, ...tools });
    }
  }
}

/** Where a server has its state; `undefined`: it has none. */
export function stateLocationOf(
  { state, agents }: Pick<ServerOptions, "state" | "agents">,
): StoreLocation | undefined {
  if (state !== undefined) return state;
  const root = agents.identity?.stateDirectory;
  return root === undefined ? undefined : { kind: "directory", root };
}

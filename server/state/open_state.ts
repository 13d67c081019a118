/**
 * Opens the state of a server, or of a command that works on it: records by an
 * engine, beside the directory of what is this machine's alone.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { StateKeySource } from "../options.ts";
import { checkState, createState } from "./remote_creation.ts";
import { OPEN_TIMEOUT_MS, RemoteEngine } from "./remote_engine.ts";
import type { RemoteStore } from "./remote_store.ts";
import { SealedEngine, SealedTransaction } from "./sealed_engine.ts";
import { readSealingKey } from "./sealing.ts";
import type { StateConnection } from "./state_connection.ts";
import { StateDirectory } from "./state_directory.ts";
import type { StateEngine, StateTransaction } from "./state_engine.ts";
import { StateAwayError } from "./state_error.ts";

/** A state that is open. */
export interface OpenState {
  readonly engine: StateEngine;
  /** What is this machine's alone; the engine itself if that is a directory. */
  readonly local: StateDirectory;
  /** It was made just now. */
  readonly isNew: boolean;
}

/** What is to be opened. */
export interface StateSource {
  readonly connection: StateConnection;
  /** What keys of authorities are encrypted with; absent: nothing. */
  readonly key?: StateKeySource;
  /** One line: the place is away, or back. */
  readonly warn: (line: string) => void;
}

/**
 * Opens the state, or makes it on the first start of the first server.
 *
 * @param stateDirectory What is this machine's alone.
 * @param fill Writes what a new state holds.
 * @throws {StateError} When it is there and not whole. Never makes a new CA in
 *   place of one that was lost.
 */
export async function openOrCreateState(
  source: StateSource,
  stateDirectory: string,
  fill: (transaction: StateTransaction) => Promise<void>,
): Promise<OpenState> {
  const { connection } = source;
  const key = await readSealingKey(source.key);
  if (connection.kind === "directory") {
    const { root } = connection;
    const { state, isNew } = await StateDirectory.openOrCreate(
      root,
      (change) => fill(new SealedTransaction(change, key)),
    );
    const local = root === stateDirectory
      ? state
      : await StateDirectory.openLocal(stateDirectory);
    return { engine: new SealedEngine(state, key), local, isNew };
  }
  if (key === undefined) {
    source.warn(
      `keys of the CA are in ${connection.name} as they are: whoever can read ` +
        "them there can issue certificates; --state-key-file encrypts them",
    );
  }
  const local = await StateDirectory.openLocal(stateDirectory);
  const untilMs = systemTimers.now() + OPEN_TIMEOUT_MS;
  const engine = new SealedEngine(await openRemote(source), key);
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
        new StateAwayError(
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
 * @throws {StateError} When there is none, or it is not whole.
 */
export async function openExistingState(
  source: StateSource,
): Promise<StateEngine> {
  const { connection } = source;
  const key = await readSealingKey(source.key);
  if (connection.kind === "directory") {
    return new SealedEngine(await StateDirectory.open(connection.root), key);
  }
  const engine = new SealedEngine(await openRemote(source), key);
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
 * @throws {StateError}
 */
export async function openPlace(source: StateSource): Promise<StateEngine> {
  const key = await readSealingKey(source.key);
  return new SealedEngine(await openRemote(source), key);
}

async function openRemote(
  { connection, warn }: StateSource,
): Promise<RemoteEngine> {
  return await RemoteEngine.open({
    store: await storeOf(connection),
    timers: systemTimers,
    wallClock: Date.now,
    random: Math.random,
    warn,
  });
}

/** Loaded when wanted: most servers have a directory. */
async function storeOf(connection: StateConnection): Promise<RemoteStore> {
  const tools = { timers: systemTimers, random: Math.random };
  switch (connection.kind) {
    case "directory":
      throw new TypeError("A directory is no store of its own");
    case "etcd": {
      const { EtcdStore } = await import("./etcd_store.ts");
      return new EtcdStore({ ...connection, ...tools });
    }
    case "kubernetes": {
      const { KubernetesStore } = await import("./kubernetes_store.ts");
      return new KubernetesStore({ ...connection, ...tools });
    }
  }
}

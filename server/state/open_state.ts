/**
 * Opens the state of a server, or of a command that works on it: records by an
 * engine, beside the directory of what is this machine's alone.
 *
 * @module
 */

import type { StateConnection } from "./state_connection.ts";
import { StateDirectory } from "./state_directory.ts";
import type { StateEngine, StateTransaction } from "./state_engine.ts";

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
  /** What is this machine's alone. */
  readonly stateDirectory: string;
}

/**
 * Opens the state, or makes it on the first start of the first server.
 *
 * @param fill Writes what a new state holds.
 * @throws {StateError} When it is there and not whole. Never makes a new CA in
 *   place of one that was lost.
 */
export async function openOrCreateState(
  { connection, stateDirectory }: StateSource,
  fill: (transaction: StateTransaction) => Promise<void>,
): Promise<OpenState> {
  if (connection.kind !== "directory") throw new TypeError("not built yet");
  const { state, isNew } = await StateDirectory.openOrCreate(
    connection.root,
    fill,
  );
  const local = connection.root === stateDirectory
    ? state
    : await StateDirectory.openLocal(stateDirectory);
  return { engine: state, local, isNew };
}

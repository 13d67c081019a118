/**
 * The state of servers, for commands that show or change it: opened, used, and
 * closed again.
 *
 * @module
 */

import { actAsOwner } from "../../net/libc/state_owner.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  connectStore,
  type SealingKeySource,
  type StoreConnection,
  type StoreLocation,
} from "../../neighbours/store/store_connection.ts";
import {
  openExistingState,
  type StateSource,
} from "../../server/state/open_state.ts";
import type { Store } from "../../neighbours/store/store.ts";
import {
  defaultStateDirectory,
  refuseOnNode,
} from "../flags/state_directory.ts";
import {
  type StateFlagValues,
  stateKey,
  stateLocation,
} from "../flags/state_flags.ts";
import { refusingConfig } from "./sources.ts";
import type { CommandContext } from "./command.ts";

/** A state that a command may work on. */
export interface CommandState {
  readonly engine: Store;
  /** The data of this machine alone, if a server runs here. */
  readonly stateDirectory: string;
}

/**
 * Works on the state that flags name.
 *
 * @throws {UsageError | StoreError} One line; else what `act` throws.
 */
export function withState<Result>(
  values: StateFlagValues & { readonly "state-dir": string },
  context: Pick<CommandContext, "environment" | "readFile" | "printError">,
  act: (state: CommandState) => Promise<Result>,
): Promise<Result> {
  const stateDirectory = values["state-dir"] ||
    defaultStateDirectory("server", context.environment);
  const location = stateLocation(values, { stateDirectory }, context);
  const isUnnamed = location.kind === "directory" && values["state-dir"] === "";
  if (isUnnamed) refuseOnNode(context.environment);
  const key = stateKey(values, location);
  if (location.kind === "directory") actAsOwner(stateDirectory);
  return usingConnection(location, async (connection) => {
    const engine = await openExistingState(
      stateSource(connection, key, context),
    );
    try {
      return await act({ engine, stateDirectory });
    } finally {
      await engine.close();
    }
  });
}

/** The open state, with warnings for the waiting user. */
export function stateSource(
  connection: StoreConnection,
  key: SealingKeySource | undefined,
  { printError }: Pick<CommandContext, "printError">,
): StateSource {
  return {
    connection,
    key,
    warn: (line) => printError(`tunnel: ${line}\n`),
  };
}

/**
 * Connects for as long as something is done there.
 *
 * @throws {UsageError} When the location cannot be used.
 */
export async function usingConnection<Result>(
  location: StoreLocation,
  act: (connection: StoreConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await refusingConfig(() =>
    connectStore(location, systemTimers)
  );
  try {
    return await act(connection);
  } finally {
    connection.close();
  }
}

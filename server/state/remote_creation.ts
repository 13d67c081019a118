/**
 * How a state that is not on this machine is made, once, by whichever server is
 * first; and recognised, so that no second authority takes the place of one that
 * was lost.
 *
 * @module
 */

import { FORMAT } from "./directory_content.ts";
import { AUTHORITY_ROLES } from "./state_directory.ts";
import type { StateEngine, StateTransaction } from "./state_engine.ts";
import { damaged, needRecord, parseRecord, StateError } from "./state_error.ts";

/** What the state is; written last. */
export const FORMAT_RECORD = "format/state.json";

/** There while a state is copied here; see `state_copy.ts`. */
export const COPYING_RECORD = "format/copying.json";

/** Makes the state if there is none. @returns Whether it did. @throws {StateError} */
export function createState(
  engine: StateEngine,
  fill: (transaction: StateTransaction) => Promise<void>,
): Promise<boolean> {
  return engine.transact(async (change) => {
    if (await change.has(FORMAT_RECORD)) return false;
    if (await change.has(COPYING_RECORD)) {
      throw new StateError(
        `Cannot use ${engine.noun}: a state is being copied there, or that was ` +
          `interrupted (${
            engine.where(COPYING_RECORD)
          }); end it with \`tunnel ` +
          "state copy`",
        "TUN813",
      );
    }
    for (const folder of ["tokens", "nodes"]) {
      const [found] = await change.list(folder);
      if (found !== undefined) throw incomplete(engine, `${folder}/${found}`);
    }
    // Where a change is not made at once another server may be about to finish:
    // its authority is the one then.
    if (!await change.has(AUTHORITY_ROLES)) await fill(change);
    await change.create(FORMAT_RECORD, JSON.stringify(FORMAT) + "\n");
    return true;
  });
}

/** Everything is there: from now on it is a state. @throws {StateError} */
export function finishCopy(engine: StateEngine): Promise<void> {
  return engine.transact(async (change) => {
    await change.put(FORMAT_RECORD, JSON.stringify(FORMAT) + "\n");
    await change.remove(COPYING_RECORD);
  });
}

/** Whether a state is there that is whole. @throws {StateError} */
export async function hasState(engine: StateEngine): Promise<boolean> {
  return await engine.look(FORMAT_RECORD) !== undefined;
}

/** @throws {StateError} When there is no state, or one that is not ours. */
export async function checkState(engine: StateEngine): Promise<void> {
  if (await engine.look(FORMAT_RECORD) === undefined) {
    throw new StateError(
      `Cannot use ${engine.noun}: there is no identity in it (no ` +
        `${
          engine.where(FORMAT_RECORD)
        }); start \`tunnel server\` with the same ` +
        "--state first",
    );
  }
  const text = await needRecord(engine, FORMAT_RECORD);
  const found = parseRecord(engine, FORMAT_RECORD, text);
  const format = found as Partial<typeof FORMAT> | null;
  if (format?.format !== FORMAT.format) {
    throw damaged(engine, FORMAT_RECORD, "it names another kind of state");
  }
  if (format.version !== FORMAT.version) {
    throw new StateError(
      `Cannot use ${engine.where(FORMAT_RECORD)}: it has format ` +
        `${
          String(format.version)
        }, wanted ${FORMAT.version}; was it made by a ` +
        "newer tunnel? Use that one",
    );
  }
}

function incomplete(engine: StateEngine, found: string): StateError {
  return new StateError(
    `Cannot use ${engine.noun}: it holds ${engine.where(found)} but no ` +
      `${engine.where(FORMAT_RECORD)}, so it is not (or no longer) whole; ` +
      `restore ${engine.noun} from a backup, or name another place with ` +
      "--state. No new CA was made",
  );
}

/**
 * How a state that is not on this machine is made, once, by whichever server is
 * first; and recognised, so that no second authority takes the place of one that
 * was lost.
 *
 * @module
 */

import { FORMAT } from "../../neighbours/store/directory_content.ts";
import { AUTHORITY_ROLES } from "../../neighbours/store/directory_store.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import {
  damaged,
  needRecord,
  parseRecord,
  StoreError,
} from "../../neighbours/store/store_error.ts";

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
        "TUN813",
      );
    }
    for (const folder of ["tokens", "nodes"]) {
      const [found] = await change.list(folder);
      if (found !== undefined) throw incomplete(store, `${folder}/${found}`);
    }
    // Where a change is not made at once another server may be about to finish:
    // its authority is the one then.
    if (!await change.has(AUTHORITY_ROLES)) await fill(change);
    await change.create(FORMAT_RECORD, JSON.stringify(FORMAT) + "\n");
    return true;
  });
}

/** Everything is there: from now on it is a state. @throws {StoreError} */
export function finishCopy(store: Store): Promise<void> {
  return store.transact(async (change) => {
    await change.put(FORMAT_RECORD, JSON.stringify(FORMAT) + "\n");
    await change.remove(COPYING_RECORD);
  });
}

/** Whether a state is there that is whole. @throws {StoreError} */
export async function hasState(store: Store): Promise<boolean> {
  return await store.look(FORMAT_RECORD) !== undefined;
}

/** @throws {StoreError} When there is no state, or one that is not ours. */
export async function checkState(store: Store): Promise<void> {
  if (await store.look(FORMAT_RECORD) === undefined) {
    throw new StoreError(
      `Cannot use ${store.noun}: there is no identity in it (no ` +
        `${
          store.where(FORMAT_RECORD)
        }); start \`tunnel server\` with the same ` +
        "--state first",
    );
  }
  const text = await needRecord(store, FORMAT_RECORD);
  const found = parseRecord(store, FORMAT_RECORD, text);
  const format = found as Partial<typeof FORMAT> | null;
  if (format?.format !== FORMAT.format) {
    throw damaged(store, FORMAT_RECORD, "it names another kind of state");
  }
  if (format.version !== FORMAT.version) {
    throw new StoreError(
      `Cannot use ${store.where(FORMAT_RECORD)}: it has format ` +
        `${
          String(format.version)
        }, wanted ${FORMAT.version}; was it made by a ` +
        "newer tunnel? Use that one",
    );
  }
}

function incomplete(store: Store, found: string): StoreError {
  return new StoreError(
    `Cannot use ${store.noun}: it holds ${store.where(found)} but no ` +
      `${store.where(FORMAT_RECORD)}, so it is not (or no longer) whole; ` +
      `restore ${store.noun} from a backup, or name another place with ` +
      "--state. No new CA was made",
  );
}

/**
 * Moves a state to another place: every record, then a look whether both are the
 * same, and only then the mark that makes it a state. What was interrupted is no
 * state, and is gone on with when it is asked for again.
 *
 * @module
 */

import { removeFile } from "../../platform/files/atomic_file.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { COPYING_RECORD, finishCopy, hasState } from "./open_state.ts";
import type { SealingKey } from "../../neighbours/store/sealing.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";

/**
 * The parts of a state. Announcements are not among them: agents announce
 * again.
 */
export const STATE_FOLDERS = ["ca", "tokens", "nodes", "duplicates"] as const;

/** How many records of each folder. */
export type RecordCounts = Readonly<
  Record<typeof STATE_FOLDERS[number], number>
>;

/** Records in one change: etcd takes 128 operations. */
const RECORDS_AT_ONCE = 50;

/** A state that servers change all the while is not copied in more rounds. */
const ROUNDS_MAX = 5;

/**
 * Copies to a place that is not a directory.
 *
 * @throws {StoreError} When there is a state already, or the place holds
 *   anything but an interrupted copy.
 */
export async function copyToRemote(
  from: Store,
  to: Store,
): Promise<RecordCounts> {
  if (await hasState(to)) throw occupied(to);
  await beginCopy(from, to);
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const differences = await differencesOf(from, to);
    if (differences.length === 0) {
      await finishCopy(to);
      return await countRecords(to);
    }
    for (let at = 0; at < differences.length; at += RECORDS_AT_ONCE) {
      const some = differences.slice(at, at + RECORDS_AT_ONCE);
      await to.transact((change) => writeAll(change, some));
    }
  }
  throw changing(from);
}

/**
 * Copies to a directory, which is made beside its place and put there when it is
 * whole.
 *
 * @param key What private keys are encrypted with there; absent: nothing.
 * @throws {StoreError} When something is there already.
 */
export async function copyToDirectory(
  from: Store,
  root: string,
  key: SealingKey | undefined,
): Promise<RecordCounts> {
  const target = root.replace(/\/+$/, "");
  await checkEmpty(target);
  const unfinished = `${target}.tunnel-copy`;
  try {
    await removeFile(unfinished, { recursive: true });
  } catch (error) {
    throw new StoreError(
      `Cannot remove ${unfinished}: ${systemProblem(error)}`,
    );
  }
  const { state } = await DirectoryStore.openOrCreate(
    unfinished,
    async (change) => await writeAll(change, await recordsOf(from)),
    key,
  );
  await removeFile(state.path("lock"));
  try {
    await Deno.rename(unfinished, target);
  } catch (error) {
    throw new StoreError(
      `Cannot put the copy at ${target}: ${
        systemProblem(error)
      }; it is whole ` +
        `in ${unfinished}, name that one or move it`,
    );
  }
  return await countRecords(await DirectoryStore.open(target));
}

/** Which records both places do not have alike; without text it is to go. */
export async function differencesOf(
  from: Store,
  to: Store,
): Promise<readonly RecordText[]> {
  const wanted = new Map(
    (await recordsOf(from)).map(({ key, text }) => [key, text]),
  );
  const differences: RecordText[] = [];
  for (const { key, text } of await recordsOf(to)) {
    if (!wanted.has(key)) differences.push({ key, text: undefined });
    else if (wanted.get(key) === text) wanted.delete(key);
  }
  for (const [key, text] of wanted) differences.push({ key, text });
  return differences;
}

/** How much there is. @throws {StoreError} */
export async function countRecords(state: Store): Promise<RecordCounts> {
  const counts: [string, number][] = [];
  for (const folder of STATE_FOLDERS) {
    counts.push([folder, (await state.list(folder)).length]);
  }
  return Object.fromEntries(counts) as RecordCounts;
}

/** A record that is to be so; without text not to be. */
interface RecordText {
  readonly key: string;
  readonly text: string | undefined;
}

async function recordsOf(state: Store): Promise<RecordText[]> {
  const records: RecordText[] = [];
  for (const folder of STATE_FOLDERS) {
    for (const name of await state.list(folder)) {
      const key = `${folder}/${name}`;
      const text = await state.look(key);
      // Removed just now.
      if (text !== undefined) records.push({ key, text });
    }
  }
  return records;
}

async function writeAll(
  change: StoreTransaction,
  records: readonly RecordText[],
): Promise<void> {
  for (const { key, text } of records) {
    if (text === undefined) await change.remove(key);
    else await change.put(key, text);
  }
}

/** Marks the place as being copied to, so that no server makes a CA there. */
async function beginCopy(from: Store, to: Store): Promise<void> {
  const counts = Object.values(await countRecords(to));
  const hasRecords = counts.some((count) => count > 0);
  await to.transact(async (change) => {
    if (await change.has(COPYING_RECORD)) return;
    if (hasRecords) {
      throw occupied(to);
    }
    await change.put(COPYING_RECORD, JSON.stringify({ of: from.noun }) + "\n");
  });
}

async function checkEmpty(root: string): Promise<void> {
  try {
    for await (const { name } of Deno.readDir(root)) {
      throw new StoreError(
        `Cannot copy to ${root}: it holds ${name}; name a directory that is ` +
          "empty or not there. Nothing was changed",
      );
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    if (error instanceof StoreError) throw error;
    throw new StoreError(
      `Cannot copy to ${root}: ${systemProblem(error)}`,
    );
  }
}

function occupied(to: Store): StoreError {
  return new StoreError(
    `Cannot copy to ${to.noun}: there are records already (such as ` +
      `${to.where("ca/roles.json")}); name an empty place. Nothing was changed`,
  );
}

function changing({ noun }: Store): StoreError {
  return new StoreError(
    `Cannot copy ${noun}: it changes all the while; stop the servers that use ` +
      "it, and copy again",
  );
}

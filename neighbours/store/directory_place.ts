/**
 * Records as files: a key is a path in a directory. What is changed here is
 * changed under the directory's lock, in the order in which it was said, so that a
 * crash leaves a beginning of it.
 *
 * @module
 */

import {
  createFile,
  removeFile,
  replaceFile,
} from "../../platform/files/atomic_file.ts";
import { checkOwner, names, unreadable } from "./directory_content.ts";
import {
  type CommitOutcome,
  NO_VERSION,
  type RecordChange,
  type TransactionPlace,
  type VersionedRecord,
} from "./transaction.ts";

/** What anybody may read; all else is for its owner. */
const PUBLIC_RECORDS: ReadonlySet<string> = new Set(["ca/bundle.crt"]);
const PUBLIC_MODE = 0o644;

/** Of every record: nobody changes one while another change is under way. */
const THERE = "1";

/** See the module description. */
export class DirectoryPlace implements TransactionPlace {
  readonly noun = "the state directory";
  readonly recordBytesMax = Infinity;
  readonly isLocked = true;

  constructor(private readonly root: string) {}

  where(key: string): string {
    return `${this.root}/${key}`;
  }

  async get(
    key: string,
    secrecy?: "secret",
  ): Promise<VersionedRecord | undefined> {
    const path = this.where(key);
    if (secrecy === "secret") await checkOwner(path, "read");
    try {
      return { text: await Deno.readTextFile(path), version: THERE };
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      return { text: "", version: THERE, problem: unreadable(path, error) };
    }
  }

  async list(
    folder: string,
    prefix: string,
  ): Promise<ReadonlyMap<string, undefined>> {
    const found = await names(this.where(folder));
    return new Map(
      found.filter((name) => name.startsWith(prefix))
        .map((name) => [name, undefined]),
    );
  }

  async commit(writes: readonly RecordChange[]): Promise<CommitOutcome> {
    for (const { key, text, version } of writes) {
      const path = this.where(key);
      if (text === undefined) {
        await removeFile(path);
        continue;
      }
      // Some folders are made when there is something in them.
      const folder = path.slice(0, path.lastIndexOf("/"));
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const mode = PUBLIC_RECORDS.has(key) ? PUBLIC_MODE : undefined;
      if (version !== NO_VERSION) await replaceFile(path, text, mode);
      // Somebody without our lock was faster.
      else if (!await createFile(path, text, mode)) return { kind: "conflict" };
    }
    return { kind: "done", versions: writes.map(() => THERE) };
  }
}

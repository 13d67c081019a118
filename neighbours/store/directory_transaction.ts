/**
 * One change of a state directory: read under its lock, and written in the order
 * in which it was said, so that a crash leaves a beginning of it.
 *
 * @module
 */

import {
  createFile,
  removeFile,
  replaceFile,
} from "../../platform/files/atomic_file.ts";
import type { Records, StoreTransaction } from "./store.ts";

/** What anybody may read; all else is for its owner. */
const PUBLIC_RECORDS: ReadonlySet<string> = new Set(["ca/bundle.crt"]);
const PUBLIC_MODE = 0o644;

/** What one write does. */
type Write =
  | {
    readonly kind: "put" | "create";
    readonly key: string;
    readonly text: string;
  }
  | { readonly kind: "remove"; readonly key: string };

/** What it needs of the directory. */
export interface TransactionFiles extends Records {
  readonly root: string;
  has(key: string): Promise<boolean>;
}

/** See the module description. */
export class DirectoryTransaction implements StoreTransaction {
  readonly #writes: Write[] = [];

  constructor(private readonly files: TransactionFiles) {}

  get noun(): string {
    return this.files.noun;
  }

  where(key: string): string {
    return this.files.where(key);
  }

  async read(key: string, secrecy?: "secret"): Promise<string | undefined> {
    const write = this.#written(key);
    if (write === undefined) return await this.files.read(key, secrecy);
    return write.kind === "remove" ? undefined : write.text;
  }

  look(key: string): Promise<string | undefined> {
    return this.read(key);
  }

  async has(key: string): Promise<boolean> {
    const write = this.#written(key);
    if (write === undefined) return await this.files.has(key);
    return write.kind !== "remove";
  }

  async list(folder: string, prefix = ""): Promise<readonly string[]> {
    const names = new Set(await this.files.list(folder, prefix));
    for (const { kind, key } of this.#writes) {
      if (!key.startsWith(`${folder}/${prefix}`)) continue;
      const name = key.slice(folder.length + 1);
      if (kind === "remove") names.delete(name);
      else names.add(name);
    }
    return [...names].sort();
  }

  put(key: string, text: string): Promise<void> {
    this.#writes.push({ kind: "put", key, text });
    return Promise.resolve();
  }

  async create(key: string, text: string): Promise<boolean> {
    if (await this.has(key)) return false;
    this.#writes.push({ kind: "create", key, text });
    return true;
  }

  async remove(key: string): Promise<boolean> {
    const isThere = await this.has(key);
    if (isThere) this.#writes.push({ kind: "remove", key });
    return isThere;
  }

  /** @returns Whether nobody without the lock came in between. */
  async commit(): Promise<boolean> {
    for (const write of this.#writes) {
      const path = `${this.files.root}/${write.key}`;
      if (write.kind === "remove") await removeFile(path);
      else {
        await makeFolderOf(path);
        if (write.kind === "put") {
          const isPublic = PUBLIC_RECORDS.has(write.key);
          const mode = isPublic ? [PUBLIC_MODE] : [];
          await replaceFile(path, write.text, ...mode);
        } else if (!await createFile(path, write.text)) return false;
      }
    }
    return true;
  }

  #written(key: string): Write | undefined {
    return this.#writes.findLast((write) => write.key === key);
  }
}

/** Some folders are made when there is something in them. */
async function makeFolderOf(path: string): Promise<void> {
  const folder = path.slice(0, path.lastIndexOf("/"));
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
}

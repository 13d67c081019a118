/**
 * The directory in which a server keeps its identity: made whole or not at
 * all, and refused when it is not what was made.
 *
 * Its files are the interface between a running server and the commands
 * `tunnel token`, `tunnel node` and `tunnel ca`. What reads, decides and writes
 * does so inside `exclusively`, which other processes respect too.
 *
 *     format             what this directory is; written last
 *     ca/roles.json      which authority does what
 *     ca/<id>.pem        an authority's certificate, and its key while it signs
 *     ca/<id>.bridge.pem the same authority, vouched for by the one before it
 *     ca/bundle.crt      whom to trust; derived, may be read by anybody
 *     server.pem         the server's key and certificates
 *     tokens/ nodes/     see token_store.ts and node_store.ts
 *     discovery/         what agents announced, by server; see member_memory.ts
 *     peers/ offers/     where servers meet; see directory_ephemerals.ts
 *     duplicates/        see duplicate_records.ts
 *     serving.json       where agents connect, for people
 *     nodes-seen.jsonl   since when nodes are here or gone; node_history.ts
 *     admin.token        lets its readers operate the server; admin_token.ts
 *     admin-view.token   lets its readers see what the server knows
 *     admin-logins-*     which browsers are let in; logins.ts
 *     admin.sock         where the server's user does either; admin_port.ts
 *     frontend.sock      where callers get in, unless flags say otherwise
 *
 * Its records are its files. Of a server whose state is kept
 * elsewhere it holds what is this machine's alone, and no `format`.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import {
  createFile,
  removeFile,
  replaceFile,
} from "../../platform/files/atomic_file.ts";
import { isSystemError } from "../../platform/files/file_error.ts";
import { watchFiles } from "../../platform/files/watch_files.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  checkFormat,
  checkOwner,
  contentOf,
  create,
  CREATING,
  CREATING_TEXT,
  FOLDERS,
  foreignSentence,
  makeFolder,
  names,
  openForLock,
  StatePresence,
  unreadable,
} from "./directory_content.ts";
import { openText, type SealingKey } from "./sealing.ts";
import {
  FOLLOWED_FOLDERS,
  type Store,
  type StoreOutage,
  type StoreTransaction,
  type StoreWatcher,
} from "./store.ts";
import {
  awayLine,
  backLine,
  damaged,
  needRecord,
  StoreError,
} from "./store_error.ts";
import {
  type CommitOutcome,
  NO_VERSION,
  type RecordChange,
  textOf,
  Transaction,
  type TransactionPlace,
  type VersionedRecord,
} from "./transaction.ts";

/** The record that every change of authorities ends with. */
export const AUTHORITY_ROLES = "ca/roles.json";

/**
 * Another program creates records here without our lock: failing this often in
 * a row means that the file system breaks its promises.
 */
const ATTEMPTS_MAX = 16;

/** How often a server looks whether its state is still there. */
const LOOK_MS = 5_000;

/** A directory that is complete, and safe for several processes. */
export class DirectoryStore implements Store {
  readonly mayLag = false;
  readonly #place: DirectoryPlace;
  readonly #presence: StatePresence;
  /** As they were last seen, for when it is away. */
  readonly #peeked = new Map<string, string>();
  #outage: StoreOutage | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly root: string,
    private readonly key: SealingKey | undefined,
  ) {
    this.#place = new DirectoryPlace(root);
    this.#presence = new StatePresence(root);
  }

  get noun(): string {
    return this.#place.noun;
  }

  get outage(): StoreOutage | undefined {
    return this.#outage;
  }

  get recordBytesMax(): number {
    return this.#place.recordBytesMax;
  }

  /**
   * Opens a directory that a server has made.
   *
   * @param key Encrypts private keys; absent: they are not encrypted.
   * @throws {StoreError} When there is none, or it is not whole.
   */
  static async open(root: string, key?: SealingKey): Promise<DirectoryStore> {
    const content = await contentOf(root);
    if (content === "complete") return await DirectoryStore.#checked(root, key);
    throw new StoreError(
      content === "foreign"
        ? foreignSentence(root, await names(root))
        : `Cannot use state directory ${root}: there is no identity in it; ` +
          "start `tunnel server` first, or name its directory with --state-dir",
    );
  }

  /**
   * Opens a directory, or makes it when it is missing or empty.
   *
   * @param fill Writes the content. It may run again over what an interrupted
   *   run has left, and nothing it wrote is used before it is through.
   * @throws {StoreError}
   */
  static async openOrCreate(
    root: string,
    fill: (transaction: StoreTransaction) => Promise<void>,
    key?: SealingKey,
  ): Promise<{ readonly state: DirectoryStore; readonly isNew: boolean }> {
    let content = await contentOf(root);
    if (content === "foreign") {
      throw new StoreError(foreignSentence(root, await names(root)));
    }
    let isNew = false;
    if (content !== "complete") {
      await makeFolder(root);
      using marker = await openForLock(`${root}/${CREATING}`, CREATING_TEXT);
      await marker.lock(true);
      // Another process may have made it while this one waited.
      content = await contentOf(root);
      if (content !== "complete") {
        const state = new DirectoryStore(root, key);
        const fillIt = () => state.#attempt(fill);
        await state.inWords(() => create(root, fillIt));
        isNew = true;
      }
    }
    await removeFile(`${root}/${CREATING}`);
    return { state: await DirectoryStore.#checked(root, key), isNew };
  }

  /**
   * Opens or makes a directory for data of this machine alone.
   *
   * @throws {StoreError}
   */
  static async openLocal(root: string): Promise<DirectoryStore> {
    const isThere = (await names(root)).length > 0;
    if (!isThere) await makeFolder(root);
    await checkOwner(root, "change");
    return new DirectoryStore(root, undefined);
  }

  /** The path of a file in it. */
  path(name: string): string {
    return `${this.root}/${name}`;
  }

  /**
   * Runs `change` while no other change runs here, in this process or another.
   * Not from inside another change.
   *
   * @throws {StoreError} When the system refuses; else the errors of `change`.
   */
  exclusively<Result>(change: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(async () => {
      await this.#presence.need();
      using file = await openForLock(this.path("lock"), "");
      return await this.inWords(async () => {
        await file.lock(true);
        return await change();
      });
    });
    // A change that failed is its caller's; the next one runs all the same.
    this.#queue = turn.catch(() => {});
    return turn;
  }

  /** @throws {StoreError} When the machine refuses; else what `act` throws. */
  async inWords<Result>(act: () => Promise<Result>): Promise<Result> {
    try {
      return await act();
    } catch (error) {
      throw isSystemError(error) ? unreadable(this.root, error) : error;
    }
  }

  /**
   * Reads a file that only its owner may read.
   *
   * @throws {StoreError} When it is missing, empty or open to others.
   */
  readSecret(name: string): Promise<string> {
    return needRecord(this, name, "secret");
  }

  // --- As a store --------------------------------------------------------------

  where(key: string): string {
    return this.path(key);
  }

  peek(key: string): string | undefined {
    try {
      const text = Deno.readTextFileSync(this.path(key));
      this.#peeked.set(key, text);
      return text;
    } catch (error) {
      if (this.#presence.problemAtOnce() !== undefined) {
        return this.#peeked.get(key);
      }
      this.#peeked.delete(key);
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw damaged(this, key, messageOf(error));
    }
  }

  async read(key: string, secrecy?: "secret"): Promise<string | undefined> {
    const text = textOf(await this.#place.get(key, secrecy));
    if (text === undefined) return void await this.#presence.need();
    return await openText(this.key, this, key, text);
  }

  look(key: string): Promise<string | undefined> {
    return this.read(key);
  }

  async list(folder: string, prefix = ""): Promise<readonly string[]> {
    const found = [...(await this.#place.list(folder, prefix)).keys()];
    if (found.length === 0) await this.#presence.need();
    return found;
  }

  transact<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result> {
    return this.exclusively(() => this.#attempt(change));
  }

  watch(watcher: StoreWatcher): () => void {
    let isClosed = false;
    let looked = Promise.resolve();
    /** One after the other: what is there now is told last. */
    const look = (then = () => {}) => {
      looked = looked.then(async () => {
        if (!isClosed) await this.#notice(watcher);
        if (!isClosed && this.#outage === undefined) then();
      });
      unawaited("task", looked);
    };
    const watch = watchFiles({
      directories: FOLLOWED_FOLDERS.map((folder) => this.path(folder)),
      timers: systemTimers,
      onEntries: (path, entries) => {
        const folder = FOLLOWED_FOLDERS.find((it) => this.path(it) === path);
        look(() => watcher.onChange(folder!, entries));
      },
      onProblem: (line) => watcher.onProblem(line),
    });
    // No event tells that a directory was unmounted.
    const looking = setInterval(look, LOOK_MS);
    return () => {
      isClosed = true;
      watch.close();
      clearInterval(looking);
    };
  }

  /** Tells once that it is away, and that it is back. */
  async #notice(watcher: StoreWatcher): Promise<void> {
    const why = await this.#presence.problem();
    const outage = this.#outage;
    if (why !== undefined) {
      this.#outage ??= { sinceMs: Date.now(), why };
      if (outage === undefined) watcher.onProblem(awayLine(this, why));
    } else if (outage !== undefined) {
      this.#outage = undefined;
      watcher.onProblem(backLine(this, Date.now() - outage.sinceMs));
      for (const folder of FOLLOWED_FOLDERS) watcher.onChange(folder);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #attempt<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const transaction = new Transaction(this.#place, this.key);
      const result = await change(transaction);
      if ((await transaction.commit()).kind === "done") return result;
    }
    throw new StoreError(
      `Cannot change ${this.root}: something else creates the same files all ` +
        "the time; look which processes use this directory",
    );
  }

  static async #checked(
    root: string,
    key: SealingKey | undefined,
  ): Promise<DirectoryStore> {
    await checkOwner(root, "change");
    const state = new DirectoryStore(root, key);
    await checkFormat(state, "format", "directory", `state directory ${root}`);
    for (const folder of FOLDERS) {
      await checkOwner(state.path(folder), "change");
    }
    return state;
  }
}

/** Records that every user may read; all others are for the owner only. */
const PUBLIC_RECORDS: ReadonlySet<string> = new Set(["ca/bundle.crt"]);
const PUBLIC_MODE = 0o644;

/** The version of every record: no record changes during another change. */
const THERE = "1";

/**
 * Records as files: a key is a path in a directory. Changes are made under the
 * directory's lock, in the order of the calls, so that a crash leaves their
 * first part.
 */
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
      // Another program without our lock was faster.
      else if (!await createFile(path, text, mode)) return { kind: "conflict" };
    }
    return { kind: "done", versions: writes.map(() => THERE) };
  }
}

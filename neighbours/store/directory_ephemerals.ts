/**
 * Ephemeral texts in a folder: a file for each text of each owner, such as
 * `ID.member`. An owner renews its file by writing it again.
 *
 * The folder is watched, and read with each renewal as well: on a shared file
 * system a machine gets no events about writes of another.
 *
 * @module
 */

import { dirname } from "node:path";
import { removeFile, UNFINISHED } from "../../platform/files/atomic_file.ts";
import {
  ifThere,
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import {
  type FileWatch,
  watchFiles,
} from "../../platform/files/watch_files.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { readInstanceId } from "../../proto/peer/peer_identity.ts";
import {
  type EphemeralOptions,
  type EphemeralPlace,
  MEMBER_PART,
  PART_NAME,
  type PlaceSights,
  type Sight,
} from "./ephemerals.ts";
import { StatePresence } from "./directory_content.ts";
import { StoreError } from "./store_error.ts";

/** Larger files are not ours. */
const FILE_MAX = 1024 * 1024;

/** Files that are read; there are some eighty for each server. */
const FILES_MAX = 32_768;

/** The last seen state of a file. */
interface SeenFile {
  readonly version: string;
  readonly modifiedMs: number;
  readonly text: string;
}

/** What it needs from outside. */
export interface DirectoryEphemeralsOptions extends EphemeralOptions {
  /** Made when it is not there. */
  readonly path: string;
}

/** See the module description. */
export class DirectoryEphemerals implements EphemeralPlace {
  readonly isLeased = false;
  readonly isReady = true;
  readonly #files = new Map<string, SeenFile>();
  /** One operation after another: the next look sees earlier writes. */
  #queue: Promise<unknown> = Promise.resolve();
  #sights: PlaceSights | undefined;
  #watch: FileWatch | undefined;
  readonly #presence: StatePresence;

  constructor(private readonly options: DirectoryEphemeralsOptions) {
    this.#presence = new StatePresence(dirname(options.path));
  }

  /** Settles when no read or write is under way. */
  get idle(): Promise<unknown> {
    return this.#queue;
  }

  follow(sights: PlaceSights): void {
    this.#sights = sights;
    this.#watch = watchFiles({
      directories: [this.options.path],
      timers: this.options.timers,
      onEntries: (_directory, names) => this.look(names),
      // It is looked at with each renewal all the same.
      onProblem: () => {},
    });
  }

  /** @param names Those that may have changed; absent: all may have. */
  look(names?: readonly string[]): void {
    const looking = this.#inTurn(() => this.#look(names)).then(
      () => this.#sights!.state("followed"),
      (error) => {
        if (!(error instanceof StoreError)) throw error;
        this.#sights!.state("followed", error.message);
      },
    );
    unawaited("task", looking);
  }

  async write(part: string, text: string | undefined): Promise<void> {
    const { instanceId } = this.options;
    const path = this.#path(instanceId, part);
    await this.#inTurn(async () => {
      if (text === undefined) await removeFile(path);
      else await this.#replace(path, text);
    });
    // This owner's own liveness is the measure for the age of others.
    const isFirst = text !== undefined && part === MEMBER_PART &&
      !this.#files.has(`${instanceId}.${part}`);
    if (isFirst) this.look();
  }

  remove(instanceId: string, part: string): Promise<void> {
    return this.#inTurn(async () => {
      await removeFile(this.#path(instanceId, part));
      // Its unfinished work.
      await removeFile(`${this.options.path}/${UNFINISHED}${instanceId}`);
    });
  }

  async stop(parts: readonly string[]): Promise<void> {
    this.#watch?.close();
    // The first text first: without it the others are ignored.
    for (const part of new Set([MEMBER_PART, ...parts])) {
      await this.write(part, undefined);
    }
  }

  /**
   * Renamed into place without a sync to disk: it is valid for seconds only.
   */
  async #replace(path: string, text: string): Promise<void> {
    const { path: folder, instanceId } = this.options;
    const unfinished = `${folder}/${UNFINISHED}${instanceId}`;
    await this.#presence.need();
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(unfinished, text, { mode: 0o600 });
    await Deno.rename(unfinished, path);
  }

  async #look(names?: readonly string[]): Promise<void> {
    const found = new Set(names ?? await namesIn(this.options.path));
    for (const name of this.#files.keys()) {
      if (names === undefined && !found.has(name)) this.#files.delete(name);
    }
    const sights: Sight[] = [];
    for (const name of found) {
      const [instanceId = "", part = "", ...more] = name.split(".");
      const isPart = readInstanceId(instanceId) !== undefined &&
        PART_NAME.test(part) && more.length === 0;
      if (!isPart) continue;
      const file = await this.#read(name);
      if (file !== undefined) sights.push({ instanceId, part, ...file });
      else if (names !== undefined) {
        sights.push({ instanceId, part, text: undefined, version: "" });
      }
    }
    const own = this.#files.get(`${this.options.instanceId}.${MEMBER_PART}`);
    const { timeoutMs } = this.options;
    const judged = sights.map((sight) => {
      const file = this.#files.get(`${sight.instanceId}.${sight.part}`);
      const ageMs = (own?.modifiedMs ?? 0) - (file?.modifiedMs ?? 0);
      return { ...sight, isOld: ageMs > timeoutMs };
    });
    if (names === undefined) this.#sights!.listed(judged);
    else this.#sights!.changed(judged);
  }

  async #read(name: string): Promise<SeenFile | undefined> {
    const path = `${this.options.path}/${name}`;
    const before = this.#files.get(name);
    this.#files.delete(name);
    const found = await ifThere(Deno.stat(path));
    if (found === undefined) return undefined;
    const { mtime, ino, size } = found;
    const isOne = size <= FILE_MAX && this.#files.size < FILES_MAX;
    if (!isOne) return undefined;
    const modifiedMs = mtime?.getTime() ?? 0;
    const version = `${modifiedMs} ${ino} ${size}`;
    const text = before?.version === version
      ? before.text
      : await ifThere(Deno.readTextFile(path));
    if (text === undefined) return undefined;
    const file = { version, modifiedMs, text };
    this.#files.set(name, file);
    return file;
  }

  #path(instanceId: string, part: string): string {
    return `${this.options.path}/${instanceId}.${part}`;
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(act).catch((error) => {
      if (!isSystemError(error)) throw error;
      const { path } = this.options;
      const why = systemProblem(error);
      throw new StoreError(`Cannot meet other servers in ${path}: ${why}`);
    });
    this.#queue = turn.catch(() => {});
    return turn;
  }
}

async function namesIn(path: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(path)) names.push(name);
  return names;
}

/**
 * Servers that share a state directory meet in a folder of it: a file for each
 * part of each server. Nothing is watched, because a shared file system tells
 * nobody what another machine has written; looking twice a second is cheap.
 *
 * A server renews its file. Who has not done so for a while is gone; whether it
 * has is seen by its file changing, and at the first sight by how much older it is
 * than this server's own, so that no two clocks are compared.
 *
 * Reading order: `start`, `#round`, `#write`, `#look`, `#judge`.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import {
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import { removeFile } from "../../platform/files/atomic_file.ts";
import { readInstanceId } from "../../proto/peer/instance_id.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type EngineEvents,
  MEMBER_PART,
  type MemberEngine,
  MEMBERS_MAX,
  PART_NAME,
  type PartChange,
} from "./member_engine.ts";

/** How often the folder is looked at. */
export const LOOK_MS = 500;

/** Renewals in the time after which a server is gone. */
const RENEWALS = 4;

/** A file that nobody has renewed for so many times that long is removed. */
const REMOVED_AFTER = 10;

/** What files that are being written begin with. */
const UNFINISHED = ".unfinished-";

/** Larger files are nobody's; see `agent_shards.ts`. */
const FILE_MAX = 1024 * 1024;

/** What `DirectoryEngine` needs from outside. */
export interface DirectoryEngineOptions {
  /** Made when it is not there. */
  readonly path: string;
  readonly instanceId: string;
  /** A server that says nothing for so long is gone. */
  readonly timeoutMs: number;
  readonly timers: Timers;
}

/** A file of a server. */
interface SeenFile {
  readonly version: string;
  readonly modifiedMs: number;
}

/** What is known of one server's files. */
interface SeenServer {
  readonly files: Map<string, SeenFile>;
  /** Milliseconds (clock) when its file about itself last changed. */
  heardMs: number;
  /** What was reported is there, with the text about the server itself. */
  readonly reported: Map<string, string>;
}

export class DirectoryEngine implements MemberEngine {
  readonly #options: DirectoryEngineOptions;
  /** What this server publishes, and what of it is still to be written. */
  readonly #own = new Map<string, string>();
  readonly #unwritten = new Set<string>();
  readonly #servers = new Map<string, SeenServer>();
  #events: EngineEvents | undefined;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #renewedMs = -Infinity;
  #isFollowing = false;
  #isOver = false;

  constructor(options: DirectoryEngineOptions) {
    this.#options = options;
  }

  start(events: EngineEvents): void {
    this.#events = events;
    this.#schedule(0);
  }

  publish(part: string, text: string | undefined): void {
    if (text === undefined) this.#own.delete(part);
    else this.#own.set(part, text);
    this.#unwritten.add(part);
    // What is new is written at once, unless it is being written.
    if (this.#running === undefined && this.#events !== undefined) {
      this.#schedule(0);
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#timer?.cancel();
    await this.idle;
    try {
      // The others' turn comes with the first file: agents are not looked at then.
      await removeFile(this.#path(MEMBER_PART));
      for (const part of this.#own.keys()) await removeFile(this.#path(part));
    } catch (error) {
      // It is gone for the others when it is not renewed.
      if (!isSystemError(error)) throw error;
    }
  }

  /** Settles when nothing is being read or written. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  #schedule(delayMs: number): void {
    if (this.#isOver) return;
    this.#timer?.cancel();
    this.#timer = this.#options.timers.after(delayMs, () => {
      this.#running = this.#round().finally(() => {
        this.#running = undefined;
        this.#schedule(this.#unwritten.size > 0 ? LOOK_MS / 10 : LOOK_MS);
      });
      unawaited("task", this.#running);
    });
  }

  async #round(): Promise<void> {
    try {
      await this.#write();
      await this.#look();
      if (this.#isOver || this.#isFollowing) return;
      this.#isFollowing = true;
      this.#events!.following();
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.#isFollowing = false;
      this.#events!.problem(
        `Cannot meet other servers in ${this.#options.path}: ${
          systemProblem(error)
        }`,
      );
    }
  }

  // --- This server's files ---------------------------------------------------------

  async #write(): Promise<void> {
    const { timers, timeoutMs, path } = this.#options;
    if (!this.#isFollowing) {
      await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    }
    const isDue = timers.now() - this.#renewedMs >= timeoutMs / RENEWALS;
    if (isDue && this.#own.has(MEMBER_PART)) this.#unwritten.add(MEMBER_PART);
    for (const part of this.#unwritten) {
      const text = this.#own.get(part);
      this.#unwritten.delete(part);
      try {
        await this.#replace(part, text);
      } catch (error) {
        this.#unwritten.add(part);
        throw error;
      }
      if (part === MEMBER_PART) this.#renewedMs = timers.now();
    }
  }

  /** Renamed into place, and not made durable: it is true for seconds only. */
  async #replace(part: string, text: string | undefined): Promise<void> {
    const path = this.#path(part);
    if (text === undefined) return void await removeFile(path);
    const { instanceId } = this.#options;
    const unfinished = `${this.#options.path}/${UNFINISHED}${instanceId}`;
    await Deno.writeTextFile(unfinished, text, { mode: 0o600 });
    await Deno.rename(unfinished, path);
  }

  #path(part: string): string {
    return `${this.#options.path}/${this.#options.instanceId}.${part}`;
  }

  // --- All files -------------------------------------------------------------------

  async #look(): Promise<void> {
    const { path, instanceId: own } = this.#options;
    const found = new Map<string, Map<string, SeenFile>>();
    const unfinished: string[] = [];
    for await (const { name } of Deno.readDir(path)) {
      if (name.startsWith(UNFINISHED)) unfinished.push(`${path}/${name}`);
      const [instanceId = "", part = "", ...more] = name.split(".");
      const isPart = readInstanceId(instanceId) !== undefined &&
        PART_NAME.test(part) && more.length === 0;
      if (!isPart) continue;
      const file = await seen(`${path}/${name}`);
      if (file === undefined) continue;
      const files = found.get(instanceId) ?? new Map<string, SeenFile>();
      if (found.size < MEMBERS_MAX || instanceId === own) {
        found.set(instanceId, files.set(part, file));
      }
    }
    const ownFiles = found.get(own);
    const changes: PartChange[] = [];
    // Whether this server is there is what the rest is judged by.
    const ids = [...found.keys(), ...this.#servers.keys()];
    for (const id of new Set([own, ...ids])) {
      changes.push(
        ...await this.#judge(id, found.get(id) ?? new Map(), ownFiles),
      );
    }
    if (this.#isOver) return;
    if (changes.length > 0) this.#events!.changed(changes);
    await this.#tidy(unfinished, ownFiles);
    for (const part of this.#own.keys()) {
      if (ownFiles?.has(part) !== true) this.#unwritten.add(part);
    }
  }

  /** Removes what servers that were killed have not finished. */
  async #tidy(
    unfinished: readonly string[],
    ownFiles: ReadonlyMap<string, SeenFile> | undefined,
  ): Promise<void> {
    const olderMs = REMOVED_AFTER * this.#options.timeoutMs;
    for (const path of unfinished) {
      const file = await seen(path);
      const isLeft = file !== undefined &&
        isLeftOver(new Map([[path, file]]), ownFiles, olderMs);
      if (isLeft) await removeFile(path);
    }
  }

  async #judge(
    id: string,
    files: ReadonlyMap<string, SeenFile>,
    ownFiles: ReadonlyMap<string, SeenFile> | undefined,
  ): Promise<PartChange[]> {
    const { timers, timeoutMs, instanceId: own, path } = this.#options;
    const now = timers.now();
    const member = files.get(MEMBER_PART);
    let server = this.#servers.get(id);
    if (server === undefined) {
      server = { files: new Map(), heardMs: -Infinity, reported: new Map() };
      this.#servers.set(id, server);
      // At the first sight only: clocks of other machines may have set the times.
      const ownMs = ownFiles?.get(MEMBER_PART)?.modifiedMs;
      const isOld = member !== undefined && ownMs !== undefined &&
        ownMs - member.modifiedMs > timeoutMs;
      if (!isOld) server.heardMs = now;
    } else if (
      member !== undefined &&
      member.version !== server.files.get(MEMBER_PART)?.version
    ) server.heardMs = now;
    const silentMs = now - server.heardMs;
    const isLive = id === own || (member !== undefined && silentMs < timeoutMs);
    const changes: PartChange[] = [];
    for (const [part, file] of files) {
      const isKnown = server.files.get(part)?.version === file.version &&
        server.reported.has(part);
      server.files.set(part, file);
      if (!isLive || isKnown) continue;
      const text = await readText(`${path}/${id}.${part}`);
      if (text === undefined) continue;
      // Renewed, and as it was.
      const isSame = part === MEMBER_PART && server.reported.get(part) === text;
      server.reported.set(part, part === MEMBER_PART ? text : "");
      if (!isSame) changes.push({ instanceId: id, part, text });
    }
    for (const part of [...server.files.keys()]) {
      if (!files.has(part)) server.files.delete(part);
    }
    for (const part of [...server.reported.keys()]) {
      if (isLive && files.has(part)) continue;
      server.reported.delete(part);
      changes.push({ instanceId: id, part, text: undefined });
    }
    if (files.size === 0) this.#servers.delete(id);
    const isLeft = !isLive && server.heardMs > -Infinity
      ? silentMs > REMOVED_AFTER * timeoutMs
      : !isLive && isLeftOver(files, ownFiles, REMOVED_AFTER * timeoutMs);
    if (isLeft) {
      for (const part of files.keys()) {
        await removeFile(`${path}/${id}.${part}`);
      }
    }
    return changes;
  }
}

/** By how much older its files are than this server's. */
function isLeftOver(
  files: ReadonlyMap<string, SeenFile>,
  ownFiles: ReadonlyMap<string, SeenFile> | undefined,
  olderMs: number,
): boolean {
  const ownMs = ownFiles?.get(MEMBER_PART)?.modifiedMs;
  return ownMs !== undefined &&
    [...files.values()].every(({ modifiedMs }) => ownMs - modifiedMs > olderMs);
}

async function seen(path: string): Promise<SeenFile | undefined> {
  try {
    const { mtime, ino, size } = await Deno.stat(path);
    if (size > FILE_MAX) return undefined;
    const modifiedMs = mtime?.getTime() ?? 0;
    return { modifiedMs, version: `${modifiedMs} ${ino} ${size}` };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * What discovery has said, on disk: what a proxy serves when it starts and no
 * server answers.
 *
 * One file, replaced as a whole. Its first line says what it is, of which node
 * and the checksum of the rest; each further line is a resource. One that is
 * damaged, of another node or too long is not used and does no harm; a disk that
 * takes no more is a line in the log.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  removeUnfinishedOf,
  replaceFile,
} from "../../../platform/files/atomic_file.ts";
import {
  isSystemError,
  systemProblem,
} from "../../../platform/files/file_error.ts";
import {
  checkPrivate,
  PrivateFileError,
} from "../../../platform/files/private_files.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import type { Recalled } from "../../../client/ads/ads_client.ts";

/** Longer ones are neither written nor read. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** A change is on disk so soon … */
export const SAVE_DELAY_MS = 1_000;

/** … unless it was written to just before. */
export const SAVE_INTERVAL_MS = 10_000;

/** Resources between two looks at what else is to be done. */
const SLICE = 500;

const FORMAT = "tunnel-discovery-state";
const VERSION = 1;

/** What it needs from outside. */
export interface LastKnownGoodOptions {
  readonly path: string;
  /** Whose it is; another one's is not used. */
  readonly node: string;
  readonly timers: Timers;
  readonly log: Log;
  /** {@linkcode FILE_BYTES_MAX} unless given. */
  readonly bytesMax?: number;
}

/** What was read. */
export interface Remembered {
  readonly savedMs: number;
  readonly resources: readonly Recalled[];
}

/** See the module description. */
export class LastKnownGood {
  readonly #options: LastKnownGoodOptions;
  #timer: Timer | undefined;
  #saving: Promise<void> | undefined;
  #savedMs = -Infinity;
  #collect: (() => readonly Recalled[]) | undefined;
  /** Said already. */
  #problem: string | undefined;
  #isClosed = false;

  constructor(options: LastKnownGoodOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  /** Why the newest state is not on disk; `undefined`: it is, or will be. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Reads the file. Whatever is wrong with it is said to the log. */
  async load(): Promise<Remembered | undefined> {
    const { path, log } = this.#options;
    try {
      await Deno.mkdir(parentOf(path), { recursive: true, mode: 0o700 });
      await removeUnfinishedOf(path);
      return await this.#read();
    } catch (error) {
      const problem = problemOf(error);
      log.warn(
        `Cannot use ${path}: ${problem}; services are served when a ` +
          "discovery server answers",
      );
      return undefined;
    }
  }

  /**
   * There is something new.
   *
   * @param collect All there is at the moment of writing.
   */
  changed(collect: () => readonly Recalled[]): void {
    this.#collect = collect;
    if (this.#isClosed || this.#saving || this.#timer) return;
    const { timers } = this.#options;
    const sinceMs = timers.now() - this.#savedMs;
    const delayMs = Math.max(SAVE_DELAY_MS, SAVE_INTERVAL_MS - sinceMs);
    const save = () => unawaited("file", this.#save());
    this.#timer = timers.after(delayMs, save);
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#saving;
    if (this.#collect !== undefined) await this.#save();
  }

  #save(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const resources = this.#collect!();
    this.#collect = undefined;
    return this.#saving = this.#write(resources).finally(() => {
      this.#saving = undefined;
      this.#savedMs = this.#options.timers.now();
      // What has changed meanwhile.
      if (this.#collect !== undefined) this.changed(this.#collect);
    });
  }

  async #write(resources: readonly Recalled[]): Promise<void> {
    const { path, node, log, bytesMax = FILE_BYTES_MAX } = this.#options;
    try {
      const body = await bodyOf(resources, bytesMax);
      const head = {
        ...{ format: FORMAT, version: VERSION, node, savedMs: Date.now() },
        ...{ count: resources.length, sha256: sha256(body) },
      };
      await Deno.mkdir(parentOf(path), { recursive: true, mode: 0o700 });
      await replaceFile(path, `${JSON.stringify(head)}\n${body}`);
      if (this.#problem !== undefined) {
        log.event("what discovery says is kept on disk again", { path });
      }
      this.#problem = undefined;
    } catch (error) {
      const problem = problemOf(error);
      if (problem !== this.#problem) {
        log.warn(
          `Cannot keep what discovery says in ${path}: ${problem}; a proxy ` +
            "that starts without a server will serve what was kept before",
        );
      }
      this.#problem = problem;
    }
  }

  async #read(): Promise<Remembered | undefined> {
    const { path, node, bytesMax = FILE_BYTES_MAX } = this.#options;
    let size: number;
    try {
      ({ size } = await Deno.stat(path));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
    // Whoever can write to it says where connections go.
    await checkPrivate(path, "change");
    if (size > bytesMax) throw tooLong(bytesMax);
    const text = await Deno.readTextFile(path);
    const end = text.indexOf("\n");
    const head = headOf(text.slice(0, end));
    const body = text.slice(end + 1);
    if (head.sha256 !== sha256(body)) {
      throw new StateError("it is damaged: its checksum is another one");
    }
    if (head.node !== node) {
      throw new StateError(`it is of the node ${head.node}, this is ${node}`);
    }
    const resources: Recalled[] = [];
    for (const line of body.split("\n")) {
      if (line !== "") resources.push(recalledOf(line));
    }
    return { savedMs: head.savedMs, resources };
  }
}

/** A file that is not as it was written. Goes on after "Cannot use PATH: ". */
class StateError extends Error {
  override readonly name = "StateError";
}

interface Head {
  readonly node: string;
  readonly savedMs: number;
  readonly sha256: string;
}

function headOf(line: string): Head {
  let found: Readonly<Record<string, unknown>>;
  try {
    found = Object(JSON.parse(line));
  } catch {
    throw new StateError("it is damaged: its first line is no JSON");
  }
  const { format, version, node, savedMs, sha256 } = found;
  if (format !== FORMAT) throw new StateError("it is not of a proxy");
  if (version !== VERSION) {
    throw new StateError(
      `it has version ${
        String(version)
      }, wanted ${VERSION} (of a newer tunnel?)`,
    );
  }
  const isWhole = typeof node === "string" && typeof savedMs === "number" &&
    typeof sha256 === "string";
  if (!isWhole) throw new StateError("it is damaged: its first line says less");
  return { node, savedMs, sha256 };
}

/** The checksum was right: whoever wrote it is one of us. */
function recalledOf(line: string): Recalled {
  const [kind, name, version, value] = JSON.parse(line) as [
    ResourceKind,
    string,
    string,
    string,
  ];
  if (!RESOURCE_KINDS.includes(kind)) {
    throw new StateError(`it holds a ${kind}, which is no kind of resource`);
  }
  const bytes = Buffer.from(value, "base64");
  return {
    ...{ kind, name, version, typeUrl: TYPE_URLS[kind] },
    value: new Uint8Array(bytes),
  };
}

/** In slices: connections that are carried meanwhile do not wait for it. */
async function bodyOf(
  resources: readonly Recalled[],
  bytesMax: number,
): Promise<string> {
  const lines: string[] = [];
  let bytes = 0;
  for (const [index, { kind, name, version, value }] of resources.entries()) {
    if (index % SLICE === SLICE - 1) await nextTurn();
    const text = Buffer.from(value).toString("base64");
    const line = `${JSON.stringify([kind, name, version, text])}\n`;
    bytes += line.length;
    if (bytes > bytesMax) throw tooLong(bytesMax);
    lines.push(line);
  }
  return lines.join("");
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function tooLong(bytesMax: number): StateError {
  return new StateError(`it would be longer than ${bytesMax} bytes`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** @throws {unknown} What is neither the file's fault nor the machine's. */
function problemOf(error: unknown): string {
  if (error instanceof StateError) return error.message;
  if (error instanceof PrivateFileError) {
    return error.message.replace(/^Cannot use [^:]*: /, "");
  }
  if (isSystemError(error) || isPlatforms(error)) return systemProblem(error);
  throw error;
}

function isPlatforms(error: unknown): boolean {
  return error instanceof Error && error.name in Deno.errors;
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash) || "/";
}

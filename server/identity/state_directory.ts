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
 *     duplicates/        see duplicate_records.ts
 *     serving.json       where agents connect, for people
 *     admin.token        lets its readers see what the server knows; admin_access.ts
 *     frontend.sock      where callers get in, unless flags say otherwise
 *
 * A new authority is made only for a directory that is missing or empty: one
 * that lost its authority is a fault that a person must see, because a new one
 * would lock every node out.
 *
 * @module
 */

import {
  finishedFiles,
  removeFile,
  removeUnfinished,
  replaceFile,
  syncDirectory,
} from "../../platform/files/atomic_file.ts";
import {
  isSystemError,
  systemProblem,
} from "../../platform/files/file_error.ts";
import {
  checkPrivate,
  PrivateFileError,
} from "../../platform/files/private_files.ts";

/** A state directory, or a file in it, that cannot be used. */
export class StateError extends Error {
  override readonly name = "StateError";
}

const FORMAT = { format: "tunnel-server-state", version: 1 } as const;

/** There while the directory is being made, gone when it is complete. */
const CREATING = "creating";
const CREATING_TEXT =
  "This directory is being made. If this file stays, that " +
  "was interrupted before anything here was used; the next start begins anew.\n";

/** What making a directory may leave behind when it is interrupted. */
const MADE: ReadonlySet<string> = new Set([
  CREATING,
  "ca",
  "tokens",
  "nodes",
  "lock",
  "server.pem",
]);

const FOLDERS = ["ca", "tokens", "nodes"] as const;

/** A directory that is complete, and safe for several processes. */
export class StateDirectory {
  readonly root: string;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(root: string) {
    this.root = root;
  }

  /**
   * Opens a directory that a server has made.
   *
   * @throws {StateError} When there is none, or it is not whole.
   */
  static async open(root: string): Promise<StateDirectory> {
    const content = await contentOf(root);
    if (content === "complete") return await StateDirectory.#checked(root);
    throw new StateError(
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
   * @throws {StateError}
   */
  static async openOrCreate(
    root: string,
    fill: (state: StateDirectory) => Promise<void>,
  ): Promise<{ readonly state: StateDirectory; readonly isNew: boolean }> {
    let content = await contentOf(root);
    if (content === "foreign") {
      throw new StateError(foreignSentence(root, await names(root)));
    }
    let isNew = false;
    if (content !== "complete") {
      await makeFolder(root);
      using marker = await openForLock(`${root}/${CREATING}`, CREATING_TEXT);
      await marker.lock(true);
      // Another process may have made it while this one waited.
      content = await contentOf(root);
      if (content !== "complete") {
        const state = new StateDirectory(root);
        await state.inWords(() => create(root, () => fill(state)));
        isNew = true;
      }
    }
    await removeFile(`${root}/${CREATING}`);
    return { state: await StateDirectory.#checked(root), isNew };
  }

  /** The path of a file in it. */
  path(name: string): string {
    return `${this.root}/${name}`;
  }

  /**
   * Runs `change` while nobody else changes anything here, in this process or
   * another one. Not from inside another change.
   *
   * @throws {StateError} When the machine does not let it; else what it throws.
   */
  exclusively<Result>(change: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(async () => {
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

  /** @throws {StateError} When the machine refuses; else what `act` throws. */
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
   * @throws {StateError} When it is missing, empty or open to others.
   */
  async readSecret(name: string): Promise<string> {
    const path = this.path(name);
    await checkOwner(path, "read");
    return await readState(path);
  }

  /** A file as JSON. @throws {StateError} */
  async readJson(name: string): Promise<unknown> {
    return parseState(this.path(name), await readState(this.path(name)));
  }

  static async #checked(root: string): Promise<StateDirectory> {
    await checkOwner(root, "change");
    const state = new StateDirectory(root);
    const format = await state.readJson("format") as Partial<typeof FORMAT>;
    if (format?.format !== FORMAT.format) {
      throw damaged(state.path("format"), "it names another kind of directory");
    }
    if (format.version !== FORMAT.version) {
      throw new StateError(
        `Cannot use state directory ${root}: it has format ` +
          `${String(format.version)}, wanted ${FORMAT.version}; was it made ` +
          "by a newer tunnel? Use that one",
      );
    }
    for (const folder of FOLDERS) {
      await checkOwner(state.path(folder), "change");
    }
    return state;
  }
}

type Content = "nothing" | "unfinished" | "complete" | "foreign";

async function contentOf(root: string): Promise<Content> {
  const found = await names(root);
  if (found.length === 0) return "nothing";
  if (found.includes("format")) return "complete";
  const wasCreating = found.includes(CREATING) &&
    found.every((name) => MADE.has(name));
  if (!wasCreating) return "foreign";
  for (const folder of ["tokens", "nodes"]) {
    if ((await names(`${root}/${folder}`)).length > 0) return "foreign";
  }
  return "unfinished";
}

async function names(folder: string): Promise<string[]> {
  try {
    const found = await finishedFiles(folder);
    // The file system's own, at the root of a volume.
    return found.filter((name) => name !== "lost+found");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw unreadable(folder, error);
  }
}

async function create(root: string, fill: () => Promise<void>): Promise<void> {
  // What an interrupted run has left: keys that nobody ever used.
  for (const name of MADE) {
    if (name !== CREATING) await removeTree(`${root}/${name}`);
  }
  await removeUnfinished(root);
  for (const folder of FOLDERS) await makeFolder(`${root}/${folder}`);
  await fill();
  await syncDirectory(root);
  await replaceFile(`${root}/format`, JSON.stringify(FORMAT) + "\n");
}

async function makeFolder(path: string): Promise<void> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    await Deno.chmod(path, 0o700);
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function removeTree(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Opens a file for its lock, and writes `text` if it is new. */
async function openForLock(path: string, text: string): Promise<Deno.FsFile> {
  try {
    const options = { read: true, write: true, create: true, mode: 0o600 };
    const file = await Deno.open(path, options);
    if (text !== "" && (await file.stat()).size === 0) {
      await file.write(new TextEncoder().encode(text));
    }
    return file;
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** @throws {StateError} When others than the owner could do that. */
async function checkOwner(
  path: string,
  others: "read" | "change",
): Promise<void> {
  try {
    await checkPrivate(path, others);
  } catch (error) {
    if (!(error instanceof PrivateFileError)) throw error;
    const { cause, message } = error;
    throw cause === undefined
      ? new StateError(message)
      : unreadable(path, cause);
  }
}

/** A state file's text. @throws {StateError} When there is none. */
export async function readState(path: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    throw unreadable(path, error);
  }
  if (text === "") throw damaged(path, "it is empty");
  return text;
}

/** A state file's text as JSON. @throws {StateError} */
export function parseState(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The platform's message is about a character; the reader wants the file.
    throw damaged(path, "it is no whole JSON document");
  }
}

/** Something in the directory that is not as it was written. */
export function damaged(path: string, seen: string): StateError {
  // One token or node is no reason to go back to a backup.
  const [, what, name] = /\/(token|node)s\/([^/]+?)(?:\.json|\.use-\d+)$/
    .exec(path) ?? [];
  const remedy = what === "token"
    ? `\`tunnel token revoke ${name}\` removes it`
    : what === "node"
    ? `\`tunnel node forget ${name}\` removes it, and the node joins again`
    : "restore the state directory from a backup (docs/identity.md)";
  return new StateError(
    `Cannot use ${path}: ${seen}; ${remedy}. Nothing was changed`,
  );
}

function unreadable(path: string, error: unknown): StateError {
  const seen = systemProblem(error);
  const remedy = error instanceof Deno.errors.NotFound
    ? "; restore the state directory from a backup (docs/identity.md)"
    : "";
  return new StateError(`Cannot use ${path}: ${seen}${remedy}`, {
    cause: error,
  });
}

function foreignSentence(root: string, found: readonly string[]): string {
  const some = found.slice(0, 5).join(", ") + (found.length > 5 ? ", …" : "");
  return `Cannot use state directory ${root}: it holds ${some} but no file ` +
    '"format", so it is not (or no longer) a tunnel server\'s; restore it ' +
    "from a backup, or name an empty one with --state-dir. No new CA was made";
}

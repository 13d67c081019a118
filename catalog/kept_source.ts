/**
 * A source whose last good state is kept on disk: a proxy that is started while
 * the source is away serves what was said last, and says that it does.
 *
 * A wrapper: it hands on what the source says, and knows nothing of where that
 * comes from. A copy that is damaged, of another place, or too long is not used
 * and does no harm.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { unawaited } from "../platform/errors/internal_errors.ts";
import {
  removeUnfinishedOf,
  replaceFile,
} from "../platform/files/atomic_file.ts";
import { isSystemError, systemProblem } from "../platform/files/file_error.ts";
import {
  checkPrivate,
  PrivateFileError,
} from "../platform/files/private_files.ts";
import { slicedText } from "../net/admin/sliced_text.ts";
import type { Log } from "../platform/log/log.ts";
import type { Timer, Timers } from "../proto/sync/clock.ts";
import { SourceEntries } from "./changes.ts";
import type { Part, PartKeys, Sink, Source } from "./model/source.ts";

/** Longer ones are neither written nor read. */
export const COPY_BYTES_MAX: number = 64 * 1024 * 1024;

/** Of its first line. */
const HEAD_BYTES_MAX = 1_024;

/** How long a source may be silent before its copy is served. */
export const SILENT_MS = 2_000;

/** A change is on disk so soon; many changes are written as one. */
export const SAVE_DELAY_MS = 2_000;

const FORMAT = "tunnel-catalog-copy";
const VERSION = 1;

/** What it needs from outside. */
export interface KeptSourceOptions {
  readonly path: string;
  /** Where the source is, in words; a copy of another place is not used. */
  readonly place: string;
  readonly log: Log;
  readonly timers: Timers;
  /** For tests. */
  readonly now?: () => number;
}

/** Where the copy stands. */
type State =
  /** The source has said nothing yet. */
  | { readonly kind: "waiting"; readonly timer: Timer }
  /** The copy is served; `savedMs`: it is of then. */
  | { readonly kind: "recalled"; readonly savedMs: number }
  /** The source speaks for itself. */
  | { readonly kind: "live" };

/** See the module description. */
export class KeptSource implements Source, Sink {
  readonly name: string;
  readonly #source: Source;
  readonly #options: KeptSourceOptions;
  /** All that the source has said. */
  readonly #entries = new SourceEntries();
  #state: State = { kind: "live" };
  #sink: Sink | undefined;
  #copy: Promise<Copy | undefined> = Promise.resolve(undefined);
  #saving: Promise<void> = Promise.resolve();
  #saveTimer: Timer | undefined;
  #problem: string | undefined;

  constructor(source: Source, options: KeptSourceOptions) {
    this.name = source.name;
    this.#source = source;
    this.#options = options;
  }

  // --- A source to the catalog ------------------------------------------------

  async prepare(): Promise<void> {
    await this.#source.prepare?.();
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#copy = this.#read();
    const timer = this.#options.timers.after(
      SILENT_MS,
      () => this.#recall("it has said nothing yet"),
    );
    this.#state = { kind: "waiting", timer };
    this.#source.start(this);
  }

  async stop(): Promise<void> {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#state = { kind: "live" };
    const isDue = this.#saveTimer !== undefined;
    this.#saveTimer?.cancel();
    await this.#source.stop();
    if (isDue) this.#save();
    await this.#saving;
  }

  reconcile(): Promise<void> {
    return this.#source.reconcile();
  }

  // --- A sink to the source ---------------------------------------------------

  set(part: Part): void {
    this.#entries.set(part);
    this.#sink!.set(part);
    this.#changed();
  }

  add(part: Part): void {
    this.#entries.add(part);
    this.#sink!.add(part);
    this.#changed();
  }

  remove(keys: PartKeys): void {
    this.#entries.remove(keys);
    this.#sink!.remove(keys);
    this.#changed();
  }

  repair(part: Part): void {
    this.#entries.set(part);
    this.#sink!.repair(part);
    this.#changed();
  }

  together(act: () => void): void {
    this.#sink!.together(act);
  }

  refused(problem: string): void {
    this.#sink!.refused(problem);
  }

  synced(): void {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    if (this.#state.kind === "recalled") {
      // Whatever the copy had and the source has not is gone.
      this.#sink!.set({
        services: [...this.#entries.services.values()],
        endpoints: [...this.#entries.endpoints]
          .map(([service, endpoints]) => ({ service, endpoints })),
      });
    }
    this.#state = { kind: "live" };
    this.#sink!.synced();
    this.#changed();
  }

  failed(problem: string, retryMs?: number): void {
    if (this.#state.kind === "waiting") {
      this.#state.timer.cancel();
      this.#recall(problem, retryMs);
    } else if (this.#state.kind === "recalled") {
      this.#sink!.failed(this.#inOldWords(problem), retryMs);
    } else {
      this.#sink!.failed(problem, retryMs);
    }
  }

  // --- The copy ---------------------------------------------------------------

  #recall(problem: string, retryMs?: number): void {
    unawaited(
      "catalog",
      this.#copy.then((copy) => {
        if (this.#state.kind !== "waiting") return;
        if (copy === undefined) return this.#sink!.failed(problem, retryMs);
        this.#state = { kind: "recalled", savedMs: copy.savedMs };
        this.#sink!.set(copy);
        this.#sink!.synced();
        this.#sink!.failed(this.#inOldWords(problem), retryMs);
      }),
    );
  }

  #inOldWords(problem: string): string {
    const savedMs = this.#state.kind === "recalled" ? this.#state.savedMs : 0;
    const at = new Date(savedMs).toISOString();
    return `${problem}; what it said until ${at} is used, from ` +
      this.#options.path;
  }

  #changed(): void {
    // A first list may come in parts: half of one must not be the copy.
    if (this.#state.kind !== "live") return;
    this.#saveTimer ??= this.#options.timers.after(SAVE_DELAY_MS, () => {
      this.#saveTimer = undefined;
      this.#save();
    });
  }

  #save(): void {
    this.#saveTimer = undefined;
    this.#saving = this.#saving.then(() => this.#write());
    unawaited("file", this.#saving);
  }

  async #write(): Promise<void> {
    const { path } = this.#options;
    try {
      const parent = path.slice(0, path.lastIndexOf("/")) || "/";
      await Deno.mkdir(parent, { recursive: true, mode: 0o700 });
      await removeUnfinishedOf(path);
      const bytes = await new Response(slicedText(this.#pieces())).bytes();
      if (bytes.length > COPY_BYTES_MAX - HEAD_BYTES_MAX) {
        return this.#tell("it is too long");
      }
      const body = new TextDecoder().decode(bytes);
      await replaceFile(path, `${this.#head(body)}\n${body}`);
      this.#problem = undefined;
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.#tell(systemProblem(error));
    }
  }

  #tell(problem: string): void {
    if (this.#problem === problem) return;
    this.#problem = problem;
    this.#options.log.warn(
      `Cannot keep a copy of what the source says in ${this.#options.path}: ` +
        `${problem}; started without the source, nothing would be known`,
      { source: this.name },
    );
  }

  #head(body: string): string {
    const { place, now = Date.now } = this.#options;
    return JSON.stringify({
      format: FORMAT,
      version: VERSION,
      place,
      savedMs: now(),
      sha256: sha256(body),
    });
  }

  *#pieces(): Iterable<string> {
    for (const service of this.#entries.services.values()) {
      yield `${JSON.stringify({ service })}\n`;
    }
    for (const [service, endpoints] of this.#entries.endpoints) {
      yield `${JSON.stringify({ endpoints: { service, endpoints } })}\n`;
    }
  }

  /** Whatever is wrong with it is said to the log. */
  async #read(): Promise<Copy | undefined> {
    const { path, log, place } = this.#options;
    try {
      if ((await Deno.stat(path)).size > COPY_BYTES_MAX) return undefined;
      await checkPrivate(path, "change");
      return copyIn(await Deno.readTextFile(path), place);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      const problem = error instanceof SyntaxError
        ? "it is damaged"
        : error instanceof PrivateFileError
        ? error.message
        : isSystemError(error)
        ? systemProblem(error)
        : undefined;
      if (problem === undefined) throw error;
      log.warn(`Cannot use the copy of a source in ${path}: ${problem}`, {
        source: this.name,
      });
      return undefined;
    }
  }
}

/** What was read. */
interface Copy extends Required<Part> {
  readonly savedMs: number;
}

/** @throws {SyntaxError} It is not as it was written. */
function copyIn(text: string, place: string): Copy | undefined {
  const end = text.indexOf("\n");
  const body = text.slice(end + 1);
  const head: unknown = JSON.parse(text.slice(0, Math.max(end, 0)));
  if (!isHead(head) || head.sha256 !== sha256(body)) {
    throw new SyntaxError("not a whole copy");
  }
  if (head.place !== place) return undefined;
  const copy = { savedMs: head.savedMs, services: [], endpoints: [] } as {
    savedMs: number;
    services: Required<Part>["services"][number][];
    endpoints: Required<Part>["endpoints"][number][];
  };
  for (const line of body.split("\n")) {
    if (line === "") continue;
    // Its checksum says that it is as this program wrote it.
    const { service, endpoints } = JSON.parse(line);
    if (service !== undefined) copy.services.push(service);
    if (endpoints !== undefined) copy.endpoints.push(endpoints);
  }
  return copy;
}

interface Head {
  readonly place: string;
  readonly savedMs: number;
  readonly sha256: string;
}

function isHead(head: unknown): head is Head {
  if (typeof head !== "object" || head === null) return false;
  const { format, version, place, savedMs, sha256 } = head as Record<
    string,
    unknown
  >;
  return format === FORMAT && version === VERSION &&
    typeof place === "string" && typeof sha256 === "string" &&
    Number.isFinite(savedMs) && Math.abs(savedMs as number) <= 8.64e15;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

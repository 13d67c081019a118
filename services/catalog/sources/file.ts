/**
 * Services and endpoints from a file that is read again whenever it changes,
 * however it is replaced.
 *
 * A file that cannot be used changes nothing: the last good content stays, and
 * the log says what is wrong and on which line. A missing file changes nothing
 * either: an operator who wants no services writes `services: []`.
 *
 * A file that is written in place is read as soon as it is closed. Its removals
 * and errors count only when the file has settled, because it may be half
 * written.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import type { OpenFsEvents } from "../../../platform/files/directory_watch.ts";
import { systemProblem } from "../../../platform/files/file_error.ts";
import {
  type FileWatch,
  watchFiles,
} from "../../../platform/files/watch_files.ts";
import { pause } from "../../../platform/time/pause.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { keyOf } from "../model/model.ts";
import {
  type Sink,
  type Source,
  SourceUnusableError,
} from "../model/source.ts";
import {
  type CatalogDocument,
  CatalogDocumentError,
  DOCUMENT_BYTES_MAX,
  readCatalogDocument,
} from "./document/catalog_document.ts";

/**
 * When a check finds the file changed, the watch may still be about to report
 * that: it waits at most a second until the file has settled.
 */
const WATCH_GRACE_MS = 2_000;

export interface FileSourceOptions {
  readonly path: string;
  readonly timers: Timers;
  /** For tests. */
  readonly open?: OpenFsEvents;
}

export class FileSource implements Source {
  readonly name = "file";
  readonly #stopping = new AbortController();
  #sink: Sink | undefined;
  /** What `prepare` has read. */
  #first: { text: string; document: CatalogDocument } | undefined;
  #watch: FileWatch | undefined;
  /** That the catalog has now. */
  #text: string | undefined;
  #document: CatalogDocument = { services: [], endpoints: [] };
  /**
   * Reads come one after another, so that the last one reads the newest
   * content.
   */
  #reads = Promise.resolve();

  constructor(private readonly options: FileSourceOptions) {}

  async prepare(): Promise<void> {
    try {
      const text = await readFile(this.options.path);
      this.#first = { text, document: readCatalogDocument(text) };
    } catch (error) {
      throw new SourceUnusableError(
        `Cannot use ${this.options.path}: ${problemOf(error)}`,
        { cause: error },
      );
    }
  }

  start(sink: Sink): void {
    this.#sink = sink;
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined) this.#take("set", first.text, first.document);
    // The watch begins before the file is read: a change in between is seen
    // twice rather than not at all.
    const { path, timers, open } = this.options;
    this.#watch = watchFiles({
      files: [path],
      timers,
      onFiles: () => this.#soon(() => this.#read("set")),
      onWritten: () => this.#soon(() => this.#readEarly()),
      onProblem: (line) => sink.failed(line),
      ...open && { open },
    });
    this.#soon(() => this.#read("set"));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watch?.close();
    await this.#reads;
  }

  async reconcile(): Promise<void> {
    // Before the first good content nothing could have been missed.
    if (this.#text === undefined) return this.#inTurn(() => this.#read("set"));
    const text = await readFile(this.options.path).catch(() => undefined);
    if (text === this.#text) return;
    const { signal } = this.#stopping;
    await pause(this.options.timers, WATCH_GRACE_MS, signal);
    await this.#inTurn(() => this.#read("repair"));
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#reads.then(act);
    // A failed run must not keep the next one from its turn.
    this.#reads = done.catch(() => {});
    return done;
  }

  #soon(act: () => Promise<void>): void {
    unawaited("catalog", this.#inTurn(act));
  }

  /** An unusable file is not reported now: it will be read again. */
  async #readEarly(): Promise<void> {
    try {
      const text = await readFile(this.options.path);
      if (text === this.#text) return;
      const document = readCatalogDocument(text);
      if (this.#stopping.signal.aborted) return;
      if (!takesAway(this.#document, document)) {
        this.#take("set", text, document);
      }
    } catch (error) {
      // Errors that are not ours are reported when the file has settled.
      problemOf(error);
    }
  }

  #take(
    by: "set" | "repair",
    text: string,
    document: CatalogDocument | undefined,
  ): void {
    const sink = this.#sink!;
    if (document !== undefined) {
      sink[by](document);
      this.#document = document;
    }
    this.#text = text;
    sink.synced();
  }

  async #read(by: "set" | "repair"): Promise<void> {
    const sink = this.#sink!;
    const { signal } = this.#stopping;
    try {
      const text = await readFile(this.options.path);
      const document = text === this.#text
        ? undefined
        : readCatalogDocument(text);
      if (signal.aborted) return;
      this.#take(by, text, document);
    } catch (error) {
      if (signal.aborted) return;
      sink.failed(`Cannot use ${this.options.path}: ${problemOf(error)}`);
    }
  }
}

/** Whether a service is gone, or has fewer endpoints than before. */
function takesAway(before: CatalogDocument, now: CatalogDocument): boolean {
  const services = new Set(now.services.map(keyOf));
  if (before.services.some((service) => !services.has(keyOf(service)))) {
    return true;
  }
  const counts = new Map(
    now.endpoints.map(({ service, endpoints }) => [service, endpoints.length]),
  );
  return before.endpoints.some(({ service, endpoints }) =>
    (counts.get(service) ?? -1) < endpoints.length
  );
}

async function readFile(path: string): Promise<string> {
  const { size } = await Deno.stat(path);
  if (size > DOCUMENT_BYTES_MAX) {
    throw new CatalogDocumentError(
      `it is longer than ${DOCUMENT_BYTES_MAX} bytes`,
    );
  }
  return await Deno.readTextFile(path);
}

/**
 * @throws {unknown} Errors that neither the file nor the machine has caused.
 */
function problemOf(error: unknown): string {
  if (error instanceof CatalogDocumentError) return error.message;
  // The platform's errors of files carry the system's code or are its own.
  if (error instanceof Error && (isPlatforms(error) || "code" in error)) {
    return systemProblem(error);
  }
  throw error;
}

function isPlatforms(error: Error): boolean {
  return Object.hasOwn(Deno.errors, error.name);
}

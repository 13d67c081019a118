/**
 * Services and endpoints from a file that is read again whenever it changes, by
 * whatever means it is replaced.
 *
 * A file that cannot be used changes nothing: what the last good one said stays,
 * and the log says what is wrong and on which line. That goes for a file that is
 * gone, too; who wants no services writes `services: []`.
 *
 * @module
 */

import type { OpenFsEvents } from "../../host/files/directory_watch.ts";
import { type FileWatch, watchFiles } from "../../host/files/watch_files.ts";
import { pause } from "../../host/pause.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Sink, Source } from "../source.ts";
import {
  CatalogDocumentError,
  DOCUMENT_OCTETS_MAX,
  readCatalogDocument,
} from "./catalog_document.ts";

/**
 * A file that was found to be other than it was read may still be on its way
 * through the watch, which waits a second at most until it has settled.
 */
const WATCH_GRACE_MS = 2_000;

/** See the module description. */
export interface FileSourceOptions {
  readonly path: string;
  readonly timers: Timers;
  /** For tests. */
  readonly open?: OpenFsEvents;
}

/** See the module description. */
export class FileSource implements Source {
  readonly name = "file";
  readonly #path: string;
  readonly #timers: Timers;
  readonly #open: OpenFsEvents | undefined;
  readonly #stopping = new AbortController();
  #sink: Sink | undefined;
  #watch: FileWatch | undefined;
  /** That the catalog has now. */
  #text: string | undefined;
  /** Reads come one after the other, so that the last one is of the newest. */
  #reads = Promise.resolve();

  constructor({ path, timers, open }: FileSourceOptions) {
    this.#path = path;
    this.#open = open;
    this.#timers = timers;
  }

  start(sink: Sink): void {
    this.#sink = sink;
    // Watched before it is read: what happens in between is seen twice.
    this.#watch = watchFiles({
      files: [this.#path],
      timers: this.#timers,
      onFiles: () => void this.#inTurn(() => this.#read("set")),
      onProblem: (line) => sink.failed(line),
      ...this.#open === undefined ? {} : { open: this.#open },
    });
    void this.#inTurn(() => this.#read("set"));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watch?.close();
    await this.#reads;
  }

  async reconcile(): Promise<void> {
    // Before anything was good there is nothing that could have been missed.
    if (this.#text === undefined) return this.#inTurn(() => this.#read("set"));
    const text = await readFile(this.#path).catch(() => undefined);
    if (text === this.#text) return;
    const { signal } = this.#stopping;
    await pause(this.#timers, WATCH_GRACE_MS, signal);
    await this.#inTurn(() => this.#read("repair"));
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    return this.#reads = this.#reads.then(act);
  }

  async #read(by: "set" | "repair"): Promise<void> {
    const sink = this.#sink!;
    const { signal } = this.#stopping;
    try {
      const text = await readFile(this.#path);
      const document = text === this.#text
        ? undefined
        : await readCatalogDocument(text);
      if (signal.aborted) return;
      if (document !== undefined) sink[by](document);
      this.#text = text;
      sink.synced();
    } catch (error) {
      if (signal.aborted) return;
      sink.failed(`Cannot use ${this.#path}: ${problemOf(error)}`);
    }
  }
}

async function readFile(path: string): Promise<string> {
  const { size } = await Deno.stat(path);
  if (size > DOCUMENT_OCTETS_MAX) {
    throw new CatalogDocumentError(
      `it is longer than ${DOCUMENT_OCTETS_MAX} octets`,
    );
  }
  return await Deno.readTextFile(path);
}

/** @throws {unknown} What is neither the file's fault nor the machine's. */
function problemOf(error: unknown): string {
  if (error instanceof CatalogDocumentError) return error.message;
  if (error instanceof Deno.errors.NotFound) return "there is no such file";
  // The platform's errors of files carry the system's code or are its own.
  if (error instanceof Error && (isPlatforms(error) || "code" in error)) {
    return error.message;
  }
  throw error;
}

function isPlatforms(error: Error): boolean {
  return error.name in Deno.errors;
}

/**
 * The seam between the catalog and where it comes from.
 *
 * A source lists, watches what changes, and lists again when it has lost its
 * place. It says what it knows to a sink and nothing else: the catalog decides
 * which of several sources counts, what is new, and which followers receive it.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import type { Endpoint, Service, ServiceEndpoints } from "./model.ts";
import type { SourceCopy } from "./source_copy.ts";

/** Where services and endpoints come from. */
export interface Source {
  /** For people and for metrics: `file`, `etcd`; unique in a catalog. */
  readonly name: string;
  /** Keeps its last good state for a start without it; absent: nothing does. */
  copy?: SourceCopy | undefined;
  /**
   * Reads once before `start`, so that an error in the input is reported at
   * once; absent for a source that may be away and come back.
   *
   * @throws {SourceUnusableError}
   */
  prepare?(): Promise<void>;
  /** Called once. It throws nothing: the sink is told of failures. */
  start(sink: Sink): void;
  /** Ends requests, watches and timers; the sink hears nothing after that. */
  stop(): Promise<void>;
  /**
   * Reads everything again, whatever the watch has said, and gives the result
   * to `sink.repair` after the watch had its chance to say the same. A failure
   * changes nothing; the next call tries again.
   */
  reconcile(): Promise<void>;
}

/** A user's text cannot be used. One sentence, with the remedy. */
export class SourceUnusableError extends Error {
  override readonly name = "SourceUnusableError";
  readonly tunnelCode: Code = "TUN124";
}

/**
 * Services, endpoints, or both, whole. What is absent is not spoken of: a `set` of
 * services alone leaves the endpoints of its source as they are. What is handed
 * over is frozen.
 */
export interface CatalogPart {
  readonly services?: readonly Service[];
  readonly endpoints?: readonly ServiceEndpoints[];
}

/**
 * What is new or other, and what is gone (`undefined`), by `namespace/name`. The
 * endpoints of a service that is gone stay unless they are named, too.
 */
export interface CatalogChange {
  readonly services?: ReadonlyMap<string, Service | undefined>;
  readonly endpoints?: ReadonlyMap<string, readonly Endpoint[] | undefined>;
}

/**
 * The reports of a source. Each call is one change, made before it returns. An
 * invalid entry (see `validate.ts`) is refused alone, with a line in the log;
 * its earlier version stays.
 */
export interface Sink {
  /** SET: these, and no others. An empty list is one, too. */
  set(part: CatalogPart): void;
  /** Some are other than they were; followers see all of it as one change. */
  change(change: CatalogChange): void;
  /**
   * SET after everything was read anew: a difference means that the watch
   * missed something, and is counted.
   */
  repair(part: CatalogPart): void;
  /**
   * One entry cannot be used. It is left out; its earlier version may stay. The
   * refusal is counted and logged, so a source reports it once for each version
   * of an entry.
   *
   * @param problem Which entry, and why.
   */
  refused(problem: string): void;
  /**
   * The whole state was delivered: after the first list, and each later one.
   */
  synced(): void;
  /**
   * The source cannot be followed now; its earlier entries stay. `synced` ends
   * this state.
   *
   * @param problem One sentence: what was seen, what to do.
   * @param retryMs When it is tried again; absent: when something changes.
   */
  failed(problem: string, retryMs?: number): void;
}

/**
 * The seam between the catalog and where it comes from.
 *
 * A source lists, watches what changes, and lists again when it has lost its
 * place. It says what it knows to a sink and nothing else: which of several
 * sources is believed, what is new and who receives it is the catalog's business.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import type { Service, ServiceEndpoints } from "./model.ts";

/** Where services and endpoints come from. */
export interface Source {
  /** For people and for metrics: `file`, `etcd`; unique in a catalog. */
  readonly name: string;
  /**
   * Reads once before `start`, so that who serves nothing because of a slip is
   * told so at once; absent where a source may be away and come back.
   *
   * @throws {SourceUnusableError}
   */
  prepare?(): Promise<void>;
  /** Called once. Nothing is thrown: what goes wrong is said to the sink. */
  start(sink: Sink): void;
  /** Ends requests, watches and timers; nothing is said to the sink after. */
  stop(): Promise<void>;
  /**
   * Reads everything again, whatever a watch has said, and gives it to
   * `sink.repair` once the watch had the chance to say the same. A failure
   * leaves all as it is; the next call comes.
   */
  reconcile(): Promise<void>;
}

/** What a person wrote cannot be used. One sentence, with the way to mend it. */
export class SourceUnusableError extends Error {
  override readonly name = "SourceUnusableError";
  readonly tunnelCode: Code = "TUN124";
}

/**
 * Services, endpoints, or both. What is absent is not spoken of: a `set` of
 * services alone leaves the endpoints of its source as they are. What is handed
 * over is frozen.
 */
export interface CatalogPart {
  readonly services?: readonly Service[];
  readonly endpoints?: readonly ServiceEndpoints[];
}

/** Of services and of endpoints to be removed: `namespace/name`. */
export interface PartKeys {
  readonly services?: readonly string[];
  readonly endpoints?: readonly string[];
}

/**
 * What a source says. Each call is one change, made before it returns.
 *
 * An entry that is not as it must be (see `validate.ts`) is refused alone, with
 * a line in the log; what the catalog had in its place stays.
 */
export interface Sink {
  /** SET: these, and no others. An empty list is one, too. */
  set(part: CatalogPart): void;
  /** ADD: these are new, or are now so. */
  add(part: CatalogPart): void;
  /** REMOVE: these are gone. Endpoints never go with their service. */
  remove(keys: PartKeys): void;
  /** SET after reading all anew: what differs had been missed, and is counted. */
  repair(part: CatalogPart): void;
  /** Several of the above as one change. */
  together(act: () => void): void;
  /**
   * One entry cannot be used and is left out of what is said; what it said before
   * may stay. It is counted and logged, so a source says it once for each version
   * of an entry.
   *
   * @param problem Which entry, and why.
   */
  refused(problem: string): void;
  /** Everything there is was said: after the first list, and each later one. */
  synced(): void;
  /**
   * It cannot be followed now; what was said stays. `synced` ends this.
   *
   * @param problem One sentence: what was seen, what to do.
   * @param retryMs When it is tried again; absent: when something changes.
   */
  failed(problem: string, retryMs?: number): void;
}

/**
 * What a client took last of things that it was told since, and has not taken:
 * responses that it refused, or has not answered when the next one has to go.
 *
 * Needed only when it refuses something by name, to know what it has instead. So
 * nothing is written down for a client that answers, and of one that does not,
 * only what differed.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import { type Names, namesOfList, NO_NAMES, union } from "./shared_names.ts";

/** A response that was sent. */
export interface InFlight {
  readonly resources: readonly Resource[];
  /** Delta: names that it told as gone. */
  readonly removed: readonly string[];
  /** What was told before; absent when that is written down in doubts. */
  readonly before: ByName | undefined;
  /** Names that it brought beside what had changed. */
  readonly pending: Names;
  /** Names that it brought something new of since the last that was taken. */
  readonly fresh: Names;
}

/** See the module description; of one kind on one stream. */
export class Uncertain {
  readonly #had = new Map<string, Resource | undefined>();
  #neverHad: Names = NO_NAMES;
  /** It was told for the first time, and has not said anything to that. */
  #maybeHas: Names = NO_NAMES;

  /**
   * A response was not taken.
   *
   * @param isRefused Else it is only not known whether it will be.
   */
  add({ resources, before, pending }: InFlight, isRefused: boolean): void {
    const never = new Set<string>();
    if (!isRefused) this.#forgetAbsence(namesOfList(resources), never);
    for (const { name, version } of before === undefined ? [] : resources) {
      if (pending.has(name) || this.#isKnown(name)) continue;
      const had = before!.get(name);
      if (had === undefined) never.add(name);
      else if (had.version !== version) this.#had.set(name, had);
    }
    const names = union(pending, never);
    if (isRefused) this.#neverHad = union(this.#neverHad, names);
    else this.#maybeHas = union(this.#maybeHas, names);
  }

  /** What it had nothing of, it may have by now. */
  #forgetAbsence(sent: Names, into: Set<string>): void {
    for (const [name, had] of this.#had) {
      if (had !== undefined || !sent.has(name)) continue;
      this.#had.delete(name);
      into.add(name);
    }
  }

  /** `names` are about to be told, and `told` is what the client was told. */
  remember(names: Names, sent: ByName): void {
    for (const name of names) {
      if (this.#had.has(name) || this.#neverHad.has(name)) continue;
      this.#had.set(name, sent.get(name));
    }
  }

  /** The client has `had` of a name, whatever it was told. */
  rememberOne(name: string, had: Resource | undefined): void {
    this.#had.set(name, had);
  }

  /** What the client has of a name that was remembered, if it has any. */
  hadOf(name: string): { readonly had: Resource | undefined } | undefined {
    return this.#had.has(name) ? { had: this.#had.get(name) } : undefined;
  }

  /**
   * What the client took last in the place of `resource`, which it was told;
   * absent when there is nothing, or nobody knows.
   */
  ackedInsteadOf(
    { name, version }: Resource,
    { before, pending }: InFlight,
  ): Resource | undefined {
    const isWritten = this.#had.has(name);
    if (!isWritten && (this.#neverHad.has(name) || pending.has(name))) {
      return undefined;
    }
    const had = isWritten ? this.#had.get(name) : before?.get(name);
    return had?.version === version ? undefined : had;
  }

  /** Whether nothing is known but that it was told once, and not answered. */
  isUnanswered(name: string): boolean {
    return this.#maybeHas.has(name);
  }

  /** Whether it was told because it was asked for, and never taken since. */
  isFirst({ name }: Resource, { pending }: InFlight): boolean {
    return pending.has(name) && !this.#isKnown(name);
  }

  /** Whether the client took `resource` as it is before it was told it again. */
  isTaken({ name, version }: Resource, { before, pending }: InFlight): boolean {
    if (this.#isKnown(name) || pending.has(name)) return false;
    return before === undefined || before.get(name)?.version === version;
  }

  /**
   * The client took a response.
   *
   * @param owed What it was not told yet.
   * @param taken The response.
   * @param isWhole Whether that has the whole state.
   * @returns Whether anything is left.
   */
  settle(
    pending: Names,
    taken: InFlight | undefined,
    isWhole: boolean,
  ): boolean {
    this.#neverHad = NO_NAMES;
    this.#maybeHas = NO_NAMES;
    for (const name of this.#had.keys()) {
      if (!pending.has(name)) this.#had.delete(name);
    }
    if (this.#had.size > 0 && taken !== undefined) this.#has(taken, isWhole);
    return this.#had.size > 0;
  }

  /** The client has what a response said, of names that are written down. */
  #has({ resources, removed }: InFlight, isWhole: boolean): void {
    const gone = isWhole ? [...this.#had.keys()] : removed;
    for (const name of gone) {
      if (this.#had.has(name)) this.#had.set(name, undefined);
    }
    for (const resource of resources) {
      if (this.#had.has(resource.name)) this.#had.set(resource.name, resource);
    }
  }

  #isKnown(name: string): boolean {
    return this.#had.has(name) || this.#neverHad.has(name) ||
      this.#maybeHas.has(name);
  }
}

/**
 * What a client acknowledged last of names that it was sent something newer of,
 * and did not acknowledge: it refused that response, or has not answered it when
 * the next one has to be sent.
 *
 * Needed only when the client refuses a resource by name, to know what it has
 * instead. So nothing is remembered of a client that answers, and of one that
 * does not, only what differed.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import { type Names, namesOfList, NO_NAMES, union } from "./shared_names.ts";

/** A response that was sent. */
export interface InFlight {
  readonly resources: readonly Resource[];
  /** Delta: names that it removed. */
  readonly removed: readonly string[];
  /** The state that was sent before; absent when `Uncertain` remembers it. */
  readonly before: ByName | undefined;
  /** Names that it had to have whether they changed or not. */
  readonly pending: Names;
  /** Names with new content since the last acknowledged response. */
  readonly fresh: Names;
}

/** See the module description; of one kind on one stream. */
export class Uncertain {
  readonly #had = new Map<string, Resource | undefined>();
  #neverHad: Names = NO_NAMES;
  /** Names that were sent for the first time, and not answered. */
  #maybeHas: Names = NO_NAMES;

  /**
   * A response was not acknowledged.
   *
   * @param isNacked Else it may be acknowledged yet.
   */
  add({ resources, before, pending }: InFlight, isNacked: boolean): void {
    const never = new Set<string>();
    if (!isNacked) this.#forgetAbsence(namesOfList(resources), never);
    for (const { name, version } of before === undefined ? [] : resources) {
      if (pending.has(name) || this.#isKnown(name)) continue;
      const had = before!.get(name);
      if (had === undefined) never.add(name);
      else if (had.version !== version) this.#had.set(name, had);
    }
    const names = union(pending, never);
    if (isNacked) this.#neverHad = union(this.#neverHad, names);
    else this.#maybeHas = union(this.#maybeHas, names);
  }

  /** The client may have by now what it had nothing of. */
  #forgetAbsence(sent: Names, into: Set<string>): void {
    for (const [name, had] of this.#had) {
      if (had !== undefined || !sent.has(name)) continue;
      this.#had.delete(name);
      into.add(name);
    }
  }

  /** `names` are about to be sent, and `sent` is the state that was sent last. */
  remember(names: Names, sent: ByName): void {
    for (const name of names) {
      if (this.#had.has(name) || this.#neverHad.has(name)) continue;
      this.#had.set(name, sent.get(name));
    }
  }

  /** The client has `had` of a name, whatever it was sent. */
  rememberOne(name: string, had: Resource | undefined): void {
    this.#had.set(name, had);
  }

  /** What the client has of a remembered name; absent if none is remembered. */
  hadOf(name: string): { readonly had: Resource | undefined } | undefined {
    return this.#had.has(name) ? { had: this.#had.get(name) } : undefined;
  }

  /**
   * What the client acknowledged last in the place of `resource`, which it was
   * sent; absent when that is nothing, or unknown.
   */
  ackedInsteadOf(
    { name, version }: Resource,
    { before, pending }: InFlight,
  ): Resource | undefined {
    const isRemembered = this.#had.has(name);
    if (!isRemembered && (this.#neverHad.has(name) || pending.has(name))) {
      return undefined;
    }
    const had = isRemembered ? this.#had.get(name) : before?.get(name);
    return had?.version === version ? undefined : had;
  }

  /** Whether a name was sent once, and nothing else is known. */
  isUnanswered(name: string): boolean {
    return this.#maybeHas.has(name);
  }

  /** Whether a name was sent because the client asked, and not acknowledged. */
  isFirst({ name }: Resource, { pending }: InFlight): boolean {
    return pending.has(name) && !this.#isKnown(name);
  }

  /** Whether the client acknowledged `resource` before it was sent again. */
  wasAcked(
    { name, version }: Resource,
    { before, pending }: InFlight,
  ): boolean {
    if (this.#isKnown(name) || pending.has(name)) return false;
    return before === undefined || before.get(name)?.version === version;
  }

  /**
   * The client acknowledges a response.
   *
   * @param pending Names that are still to be sent.
   * @param acked The response.
   * @param isWhole Whether the response has the whole state.
   * @returns Whether anything is left.
   */
  settle(
    pending: Names,
    acked: InFlight | undefined,
    isWhole: boolean,
  ): boolean {
    this.#neverHad = NO_NAMES;
    this.#maybeHas = NO_NAMES;
    for (const name of this.#had.keys()) {
      if (!pending.has(name)) this.#had.delete(name);
    }
    if (this.#had.size > 0 && acked !== undefined) this.#has(acked, isWhole);
    return this.#had.size > 0;
  }

  /** The client has what the response had, of remembered names. */
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

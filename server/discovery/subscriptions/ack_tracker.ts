/**
 * What a client took of what it was told, as far as its answers say: a response
 * is taken, refused, or not answered yet.
 *
 * A refusal leaves something else with the client than what it was told, and
 * silence leaves it unknown. What that is has to be known for two things: not to
 * send again what was refused, and to have something to send in its place.
 *
 * Reading order: `sent`, `noteTaken`, `noteRefused`.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import { type InFlight, Uncertain } from "./uncertain.ts";
import type { NameSet } from "./name_set.ts";
import { NackedResources } from "./nacked.ts";
import type { HeldRemovals } from "./removals.ts";
import { type Names, NO_NAMES } from "./shared_names.ts";

/** What a refusal is measured by. */
export interface NackContext {
  /** What there is. */
  readonly now: ByName;
  readonly held: HeldRemovals | undefined;
  /** What the client asked for when it refused. */
  readonly wanted: NameSet;
  /** What it has asked for anew since it was told. */
  readonly asked: Names;
  /** The client's words, for people. */
  readonly reason: string;
  readonly nowMs: number;
}

/** See the module description; of one kind on one stream. */
export class AckTracker {
  readonly #isWhole: boolean;
  readonly #retriesNacked: boolean;
  /** The last response, until it is answered. */
  #inFlight: InFlight | undefined;
  #uncertain: Uncertain | undefined;
  #nacked: NackedResources | undefined;
  /** What was new in a whole state that the client refused, until the next. */
  #refusedFresh: Names = NO_NAMES;
  #blamed: Names = NO_NAMES;
  #hasPast = false;

  /**
   * @param isWhole Whether responses have the whole state.
   * @param offersAgain Whether what was refused is offered again.
   */
  constructor(isWhole: boolean, retriesNacked: boolean) {
    this.#isWhole = isWhole;
    this.#retriesNacked = retriesNacked;
  }

  /** The response that waits for its answer. */
  get inFlight(): InFlight | undefined {
    return this.#inFlight;
  }

  /** What is refused, if anything is. */
  get nacked(): NackedResources | undefined {
    return this.#nacked;
  }

  /**
   * Names that were new in a whole state that the client refused without naming
   * any, until it takes one: nobody knows what it has of them.
   */
  get blamed(): Names {
    return this.#blamed;
  }

  /** The client came with a state that it had from an earlier stream. */
  notePast(): void {
    this.#hasPast = true;
  }

  // --- What it has -----------------------------------------------------------

  /** What the client has if it was told `resource`: it may have refused that. */
  taken(resource: Resource): Resource | undefined {
    return this.#nacked?.isNacked(resource)
      ? this.#nacked.standIn(resource)
      : resource;
  }

  /**
   * What the client has of something that is gone.
   *
   * @param told What it was told of it last.
   * @param isOwed Whether it is to be told something of it yet.
   */
  had(sent: Resource, isPending: boolean): Resource | undefined {
    const known = isPending ? this.#uncertain?.hadOf(sent.name) : undefined;
    return known === undefined ? this.taken(sent) : known.had;
  }

  /** Whether it was told of a name, and has not taken anything of it yet. */
  isUnanswered(name: string): boolean {
    if (this.#uncertain?.isUnanswered(name)) return true;
    if (this.#inFlight?.fresh.has(name) !== true) return false;
    const { before, pending } = this.#inFlight;
    return before?.has(name) !== true || pending.has(name);
  }

  /**
   * The client has `had` of a name, whatever it is told. If that is content of
   * the response in flight, a refusal leaves the client with what it had before.
   */
  remember(name: string, had: Resource | undefined): void {
    const inFlight = this.#inFlight;
    this.#uncertain ??= new Uncertain();
    if (inFlight?.fresh.has(name) !== true) {
      return this.#uncertain.rememberOne(name, had);
    }
    if (this.#uncertain.hadOf(name)?.had !== undefined) return;
    const before = inFlight.pending.has(name)
      ? undefined
      : inFlight.before?.get(name);
    this.#uncertain.rememberOne(name, (before && this.taken(before)) ?? had);
  }

  // --- What is sent ----------------------------------------------------------

  /** Names that were new in whole states that it did not take; asked once. */
  unacked(): Names {
    const names = this.#inFlight?.fresh ?? this.#refusedFresh;
    this.#refusedFresh = NO_NAMES;
    return names;
  }

  /** A response leaves, and the one before may not be taken. */
  sent(inFlight: InFlight): void {
    if (this.#inFlight !== undefined) this.#noteUncertain(this.#inFlight);
    this.#inFlight = inFlight;
  }

  /** Writes down what matters of `told`, which is a large thing. */
  letGo(sent: ByName, news: Names): void {
    if (this.#inFlight !== undefined) {
      this.#noteUncertain(this.#inFlight);
      this.#inFlight = { ...this.#inFlight, before: undefined };
    }
    this.#uncertain ??= new Uncertain();
    this.#uncertain.remember(news, sent);
  }

  #noteUncertain(inFlight: InFlight): void {
    this.#uncertain ??= new Uncertain();
    this.#uncertain.add(inFlight, false);
  }

  // --- What it answers -------------------------------------------------------

  /**
   * The last response was taken.
   *
   * @param owed What the client was not told yet.
   */
  noteAcked(sent: ByName, pending: Names): void {
    const inFlight = this.#inFlight;
    const resources = inFlight?.resources ?? [];
    this.#inFlight = undefined;
    this.#blamed = NO_NAMES;
    const isInDoubt = this.#uncertain?.settle(pending, inFlight, this.#isWhole);
    if (isInDoubt === false) this.#uncertain = undefined;
    if (this.#nacked === undefined) return;
    this.#nacked.forgetAcked(sent, resources);
    if (this.#nacked.size === 0) this.#nacked = undefined;
  }

  /**
   * The last response was refused.
   *
   * @param named Those of its resources that the client blames by name.
   * @returns Names of what was tried again and is known to be bad now: something
   *   has to be told in its place. And names that were told as gone beside what
   *   was refused.
   */
  noteNacked(named: readonly Resource[], against: NackContext): Names {
    const inFlight = this.#inFlight;
    if (inFlight === undefined) return NO_NAMES;
    this.#inFlight = undefined;
    this.#uncertain ??= new Uncertain();
    const suspects = inFlight.resources.filter((resource) =>
      this.#nacked?.suspects(resource)
    );
    this.#park(named, inFlight, against);
    this.#nacked?.noteRetriesRefused(inFlight.resources, against);
    if (this.#isWhole) this.#unhold(named, inFlight, against.held);
    // When it names some, the others may be taken.
    this.#uncertain.add(inFlight, named.length === 0);
    this.#refusedFresh = inFlight.fresh;
    const isNameless = this.#isWhole && named.length === 0;
    this.#blamed = isNameless ? inFlight.fresh : NO_NAMES;
    const bad = suspects.filter((resource) =>
      this.#nacked?.standIn(resource) !== undefined
    );
    // Some clients apply nothing of what they refuse. A response that brings
    // nothing but removals is not sent twice, or they would refuse it for ever.
    const gone = inFlight.resources.length === 0
      ? []
      : inFlight.removed.filter((name) => !against.now.has(name));
    return new Set([...bad.map(({ name }) => name), ...gone]);
  }

  #park(
    named: readonly Resource[],
    inFlight: InFlight,
    { now, wanted, asked, reason, nowMs }: NackContext,
  ): void {
    // Without the rest of it a whole state would remove what is good.
    const isAll = named.length === 0 && !this.#isWhole;
    const blamed = isAll ? inFlight.resources : named;
    // Who has asked for it anew since then is told again.
    const refused = blamed.filter(({ name }) =>
      wanted.covers(name) && !asked.has(name) &&
      (this.#isWhole || now.has(name))
    );
    if (refused.length === 0) return;
    this.#nacked ??= new NackedResources(this.#retriesNacked);
    const isSuspect = isAll && inFlight.resources.length > 1;
    for (const resource of refused) {
      const isThere = now.get(resource.name)?.version === resource.version;
      const good = this.#goodBefore(resource, inFlight);
      const refusal = { good, isThere, isSuspect, reason, nowMs };
      this.#nacked.park(resource, refusal);
    }
  }

  /** What is refused does not stay in the whole state, once it is gone. */
  #unhold(
    named: readonly Resource[],
    inFlight: InFlight,
    held: HeldRemovals | undefined,
  ): void {
    for (const resource of named) {
      const { name, version } = resource;
      if (held?.get(name)?.version !== version) continue;
      held.exchange(name, this.#goodBefore(resource, inFlight));
    }
  }

  /** What the client took last in the place of something that it refuses. */
  #goodBefore(resource: Resource, inFlight: InFlight): Resource | undefined {
    const uncertain = this.#uncertain!;
    const had = uncertain.ackedInsteadOf(resource, inFlight);
    if (had !== undefined || !this.#isWhole) return had;
    // To leave it out of a whole state is to remove it, which is worse than to
    // repeat what the client took once, or may have an older one of.
    const mayHaveOlder = this.#hasPast && uncertain.isFirst(resource, inFlight);
    return mayHaveOlder || uncertain.isTaken(resource, inFlight)
      ? resource
      : undefined;
  }
}

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
import { Doubts, type Flight } from "./doubts.ts";
import type { NameSet } from "./name_set.ts";
import { Parking } from "./parking.ts";
import type { HeldRemovals } from "./removals.ts";
import { type Names, NO_NAMES } from "./shared_names.ts";

/** What a refusal is measured by. */
export interface RefusedAgainst {
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
export class Uptake {
  readonly #isWhole: boolean;
  readonly #offersAgain: boolean;
  /** The last response, until it is answered. */
  #flight: Flight | undefined;
  #doubts: Doubts | undefined;
  #parking: Parking | undefined;
  /** What was new in a whole state that the client refused, until the next. */
  #refusedFresh: Names = NO_NAMES;
  #blamed: Names = NO_NAMES;
  #hasPast = false;

  /**
   * @param isWhole Whether responses have the whole state.
   * @param offersAgain Whether what was refused is offered again.
   */
  constructor(isWhole: boolean, offersAgain: boolean) {
    this.#isWhole = isWhole;
    this.#offersAgain = offersAgain;
  }

  /** The response that waits for its answer. */
  get flight(): Flight | undefined {
    return this.#flight;
  }

  /** What is refused, if anything is. */
  get parking(): Parking | undefined {
    return this.#parking;
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
    return this.#parking?.holds(resource)
      ? this.#parking.standIn(resource)
      : resource;
  }

  /**
   * What the client has of something that is gone.
   *
   * @param told What it was told of it last.
   * @param isOwed Whether it is to be told something of it yet.
   */
  had(told: Resource, isOwed: boolean): Resource | undefined {
    const known = isOwed ? this.#doubts?.hadOf(told.name) : undefined;
    return known === undefined ? this.taken(told) : known.had;
  }

  /** Whether it was told of a name, and has not taken anything of it yet. */
  isUnanswered(name: string): boolean {
    if (this.#doubts?.isUnanswered(name)) return true;
    if (this.#flight?.fresh.has(name) !== true) return false;
    const { before, owed } = this.#flight;
    return before?.has(name) !== true || owed.has(name);
  }

  /**
   * The client has `had` of a name, whatever it is told. If that is content of
   * the response in flight, a refusal leaves the client with what it had before.
   */
  remember(name: string, had: Resource | undefined): void {
    const flight = this.#flight;
    this.#doubts ??= new Doubts();
    if (flight?.fresh.has(name) !== true) {
      return this.#doubts.rememberOne(name, had);
    }
    if (this.#doubts.hadOf(name)?.had !== undefined) return;
    const before = flight.owed.has(name) ? undefined : flight.before?.get(name);
    this.#doubts.rememberOne(name, (before && this.taken(before)) ?? had);
  }

  // --- What is sent ----------------------------------------------------------

  /** Names that were new in whole states that it did not take; asked once. */
  untaken(): Names {
    const names = this.#flight?.fresh ?? this.#refusedFresh;
    this.#refusedFresh = NO_NAMES;
    return names;
  }

  /** A response leaves, and the one before may not be taken. */
  sent(flight: Flight): void {
    if (this.#flight !== undefined) this.#doubt(this.#flight);
    this.#flight = flight;
  }

  /** Writes down what matters of `told`, which is a large thing. */
  letGo(told: ByName, news: Names): void {
    if (this.#flight !== undefined) {
      this.#doubt(this.#flight);
      this.#flight = { ...this.#flight, before: undefined };
    }
    this.#doubts ??= new Doubts();
    this.#doubts.remember(news, told);
  }

  #doubt(flight: Flight): void {
    this.#doubts ??= new Doubts();
    this.#doubts.add(flight, false);
  }

  // --- What it answers -------------------------------------------------------

  /**
   * The last response was taken.
   *
   * @param owed What the client was not told yet.
   */
  noteTaken(told: ByName, owed: Names): void {
    const flight = this.#flight;
    const resources = flight?.resources ?? [];
    this.#flight = undefined;
    this.#blamed = NO_NAMES;
    const isInDoubt = this.#doubts?.settle(owed, flight, this.#isWhole);
    if (isInDoubt === false) this.#doubts = undefined;
    if (this.#parking === undefined) return;
    this.#parking.forgetTaken(told, resources);
    if (this.#parking.size === 0) this.#parking = undefined;
  }

  /**
   * The last response was refused.
   *
   * @param named Those of its resources that the client blames by name.
   * @returns Names of what was tried again and is known to be bad now: something
   *   has to be told in its place. And names that were told as gone beside what
   *   was refused.
   */
  noteRefused(named: readonly Resource[], against: RefusedAgainst): Names {
    const flight = this.#flight;
    if (flight === undefined) return NO_NAMES;
    this.#flight = undefined;
    this.#doubts ??= new Doubts();
    const suspects = flight.resources.filter((resource) =>
      this.#parking?.suspects(resource)
    );
    this.#park(named, flight, against);
    this.#parking?.refuseOffered(flight.resources, against);
    if (this.#isWhole) this.#unhold(named, flight, against.held);
    // When it names some, the others may be taken.
    this.#doubts.add(flight, named.length === 0);
    this.#refusedFresh = flight.fresh;
    const isNameless = this.#isWhole && named.length === 0;
    this.#blamed = isNameless ? flight.fresh : NO_NAMES;
    const bad = suspects.filter((resource) =>
      this.#parking?.standIn(resource) !== undefined
    );
    // Some clients apply nothing of what they refuse. A response that brings
    // nothing but removals is not sent twice, or they would refuse it for ever.
    const gone = flight.resources.length === 0
      ? []
      : flight.removed.filter((name) => !against.now.has(name));
    return new Set([...bad.map(({ name }) => name), ...gone]);
  }

  #park(
    named: readonly Resource[],
    flight: Flight,
    { now, wanted, asked, reason, nowMs }: RefusedAgainst,
  ): void {
    // Without the rest of it a whole state would remove what is good.
    const isAll = named.length === 0 && !this.#isWhole;
    const blamed = isAll ? flight.resources : named;
    // Who has asked for it anew since then is told again.
    const refused = blamed.filter(({ name }) =>
      wanted.covers(name) && !asked.has(name) &&
      (this.#isWhole || now.has(name))
    );
    if (refused.length === 0) return;
    this.#parking ??= new Parking(this.#offersAgain);
    const isSuspect = isAll && flight.resources.length > 1;
    for (const resource of refused) {
      const isThere = now.get(resource.name)?.version === resource.version;
      const good = this.#goodBefore(resource, flight);
      const refusal = { good, isThere, isSuspect, reason, nowMs };
      this.#parking.park(resource, refusal);
    }
  }

  /** What is refused does not stay in the whole state, once it is gone. */
  #unhold(
    named: readonly Resource[],
    flight: Flight,
    held: HeldRemovals | undefined,
  ): void {
    for (const resource of named) {
      const { name, version } = resource;
      if (held?.get(name)?.version !== version) continue;
      held.exchange(name, this.#goodBefore(resource, flight));
    }
  }

  /** What the client took last in the place of something that it refuses. */
  #goodBefore(resource: Resource, flight: Flight): Resource | undefined {
    const doubts = this.#doubts!;
    const had = doubts.takenInsteadOf(resource, flight);
    if (had !== undefined || !this.#isWhole) return had;
    // To leave it out of a whole state is to remove it, which is worse than to
    // repeat what the client took once, or may have an older one of.
    const mayHaveOlder = this.#hasPast && doubts.isFirst(resource, flight);
    return mayHaveOlder || doubts.isTaken(resource, flight)
      ? resource
      : undefined;
  }
}

/**
 * What a client was told last of one kind (`told`), what there is now, and what
 * of the difference is news to it. What is gone stays with the client for a
 * while (`held`), and is no news then.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import { type ByName, changedNames } from "../view/view.ts";
import type { NameSet } from "./name_set.ts";
import type { Owed } from "./owed.ts";
import { HeldRemovals } from "./removals.ts";
import { select } from "./selection.ts";
import { type Names, namesOfList, NO_NAMES, within } from "./shared_names.ts";
import type { Uptake } from "./uptake.ts";

const NO_RESOURCES: ByName = new Map();

/** How responses say that something is gone. */
export interface GoneForm {
  /** They name it; else it just is not in them. */
  readonly isNamed: boolean;
  /** They have the whole state, so that it is missed. */
  readonly isMissed: boolean;
  /** See `REMOVAL_PATIENCE_MS`. */
  readonly patienceMs: number;
}

/** See the module description; of one kind on one stream. */
export class Difference {
  readonly #gone: GoneForm;
  readonly #uptake: Uptake;
  #told: ByName | undefined;
  #now: ByName = NO_RESOURCES;
  #held: HeldRemovals | undefined;
  #generation = 0;
  #toldGeneration = 0;

  constructor(gone: GoneForm, uptake: Uptake) {
    this.#gone = gone;
    this.#uptake = uptake;
  }

  /** Absent before the first view. */
  get told(): ByName | undefined {
    return this.#told;
  }

  /** What there is. */
  get now(): ByName {
    return this.#now;
  }

  /** What is gone, and the client was not told so. */
  get held(): HeldRemovals | undefined {
    return this.#held;
  }

  get isHolding(): boolean {
    return this.#held !== undefined && this.#held.size > 0;
  }

  /** Of the view that `told` is of. */
  get toldGeneration(): number {
    return this.#toldGeneration;
  }

  // --- What there is ---------------------------------------------------------

  /** @returns Whether there is nothing new; else {@linkcode observe} takes it. */
  stays(now: ByName, generation: number): boolean {
    if (this.#told !== now) return false;
    this.#now = now;
    this.#generation = generation;
    this.#toldGeneration = generation;
    return true;
  }

  observe(now: ByName, generation: number): void {
    this.#now = now;
    this.#generation = generation;
  }

  /** The client has, or is owed, all that there is now. */
  advance(): void {
    this.#told = this.#now;
    this.#toldGeneration = this.#generation;
    if (this.isHolding) this.#dropBack();
  }

  /** The old state is a large thing: what matters of it is written down. */
  letGo(news: Names): void {
    this.#uptake.letGo(this.#told!, news);
    this.advance();
  }

  /** Names that are to be told, and are not what was told last. */
  news(names: NameSet): Names {
    const told = this.#told;
    const now = this.#now;
    if (told === undefined || told === now) return NO_NAMES;
    const changed = within(changedNames(told, now), names);
    const { resources, missing } = select(changed, now);
    if (!this.isHolding) {
      if (missing.length === 0) return changed;
      const { isNamed, isMissed } = this.#gone;
      return isNamed || isMissed ? changed : namesOfList(resources);
    }
    const news = new Set<string>();
    for (const name of changed) {
      const back = now.get(name);
      const isKnown = back === undefined
        ? this.#held!.get(name) !== undefined
        : this.#held!.hasExactly(back);
      if (!isKnown) news.add(name);
    }
    return news;
  }

  // --- What is gone ----------------------------------------------------------

  /** What has gone stays with the client, unless it is to be told so. */
  holdGone(names: NameSet, owed: Owed, nowMs: number): void {
    const told = this.#told!;
    const changed = within(changedNames(told, this.#now), names);
    for (const name of select(changed, this.#now).missing) {
      const had = told.get(name);
      if (had === undefined || owed.tellsGone(name)) continue;
      this.#hold(had, owed.names.has(name), nowMs);
    }
  }

  /** What was told stays while it is gone, as far as the client has it. */
  #hold(told: Resource, isOwed: boolean, nowMs: number): void {
    const had = this.#uptake.had(told, isOwed);
    // What it refused it may have applied.
    const kept = had ?? (this.#gone.isNamed ? told : undefined);
    if (kept === undefined) return;
    const knowledge = had === told ? "exact" : had ? "good" : "refused";
    this.#held ??= new HeldRemovals(this.#gone.patienceMs);
    this.#held.hold(kept, knowledge, this.#generation, nowMs);
  }

  /** Some of what is gone may be back, or gone once more. */
  lookAtHeld(nowMs: number): void {
    const now = this.#now;
    this.#held?.look((name) => now.has(name), this.#generation, nowMs);
  }

  /** What was gone is back, and maybe another one. */
  #dropBack(): void {
    const held = this.#held!;
    for (const { name } of held.resources) {
      const back = this.#now.get(name);
      if (back === undefined || held.hasExactly(back)) continue;
      this.#uptake.remember(name, held.takenOf(name));
    }
    held.dropAllBut((name) => !this.#now.has(name));
  }

  /**
   * Lets go of what is gone, as far as its parents have.
   *
   * @param names What the client asks for; it keeps nothing else.
   * @returns Names that may be told as gone now.
   */
  release(names: NameSet, clearedTo: number, nowMs: number): Names {
    if (this.#held === undefined) return NO_NAMES;
    this.#held.dropAllBut((name) => names.covers(name));
    const released = this.#held.release(clearedTo, nowMs);
    if (released.size === 0) return NO_NAMES;
    // A name may be back before the client is told that it was gone.
    for (const [name, had] of released) this.#uptake.remember(name, had);
    return new Set(released.keys());
  }
}

/**
 * The state that a client was sent last of one kind (`sent`), the state of the
 * view (`now`), and the names of the difference that it is to be sent. A removed
 * resource stays with the client for a while (`held`), and is not sent then.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import { type ByName, changedNames } from "../view/view.ts";
import {
  cutTo,
  type Names,
  type NameSet,
  namesOfList,
  NO_NAMES,
  union,
} from "./name_set.ts";
import { HeldRemovals } from "./removals.ts";
import { type MissingForm, select } from "./selection.ts";
import type { AckTracker } from "./ack_tracker.ts";

const NO_RESOURCES: ByName = new Map();

/** See the module description; of one kind on one stream. */
export class Difference {
  #sent: ByName | undefined;
  #now: ByName = NO_RESOURCES;
  #held: HeldRemovals | undefined;
  #generation = 0;
  #sentGeneration = 0;

  /** @param patienceMs See `REMOVAL_PATIENCE_MS`. */
  constructor(
    private readonly missing: MissingForm,
    private readonly patienceMs: number,
    private readonly acks: AckTracker,
  ) {}

  /** Absent before the first view. */
  get sent(): ByName | undefined {
    return this.#sent;
  }

  /** The state of the view. */
  get now(): ByName {
    return this.#now;
  }

  /** Removed resources that the client still has. */
  get held(): HeldRemovals | undefined {
    return this.#held;
  }

  get isHolding(): boolean {
    return this.#held !== undefined && this.#held.size > 0;
  }

  /** The generation of the view in `sent`. */
  get sentGeneration(): number {
    return this.#sentGeneration;
  }

  // --- Changes ---------------------------------------------------------------

  /** @returns Whether nothing changed; else call {@linkcode observe}. */
  stays(now: ByName, generation: number): boolean {
    if (this.#sent !== now) return false;
    this.#now = now;
    this.#generation = generation;
    this.#sentGeneration = generation;
    return true;
  }

  observe(now: ByName, generation: number): void {
    this.#now = now;
    this.#generation = generation;
  }

  /** All that differs has been sent, or is pending. */
  advance(): void {
    this.#sent = this.#now;
    this.#sentGeneration = this.#generation;
    if (this.isHolding) this.#dropBack();
  }

  /** Frees the old state, which is large: what matters of it is remembered. */
  letGo(news: Names): void {
    this.acks.letGo(this.#sent!, news);
    this.advance();
  }

  /** Names of the client that differ from what was sent last. */
  news(names: NameSet): Names {
    const sent = this.#sent;
    const now = this.#now;
    if (sent === undefined || sent === now) return NO_NAMES;
    const changed = cutTo(changedNames(sent, now), names);
    if (!this.isHolding) {
      if (this.missing !== "unsaid") return changed;
      const { resources, missing } = select(changed, now);
      return missing.length === 0 ? changed : namesOfList(resources);
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

  // --- Removals --------------------------------------------------------------

  /** Removed resources stay with the client, unless the removal is due. */
  holdGone(names: NameSet, pending: PendingNames, nowMs: number): void {
    const sent = this.#sent!;
    const changed = cutTo(changedNames(sent, this.#now), names);
    for (const name of select(changed, this.#now).missing) {
      const had = sent.get(name);
      if (had === undefined || pending.reportsRemoval(name)) continue;
      this.#hold(had, pending.names.has(name), nowMs);
    }
  }

  /** Holds what the client has of a removed resource. */
  #hold(sent: Resource, isPending: boolean, nowMs: number): void {
    const had = this.acks.had(sent, isPending);
    // The client may still use the content that it refused.
    const kept = had ?? (this.missing === "removed" ? sent : undefined);
    if (kept === undefined) return;
    const knowledge = had === sent ? "exact" : had ? "good" : "refused";
    this.#held ??= new HeldRemovals(this.patienceMs);
    this.#held.hold(kept, knowledge, this.#generation, nowMs);
  }

  /**
   * Looks again at removed resources that the client keeps: they may be back,
   * or removed a second time.
   */
  lookAtHeld(nowMs: number): void {
    const now = this.#now;
    this.#held?.look((name) => now.has(name), this.#generation, nowMs);
  }

  /** Drops removals of resources that are back, maybe with other content. */
  #dropBack(): void {
    const held = this.#held!;
    for (const { name } of held.resources) {
      const back = this.#now.get(name);
      if (back === undefined || held.hasExactly(back)) continue;
      this.acks.remember(name, held.ackedOf(name));
    }
    held.dropAllBut((name) => !this.#now.has(name));
  }

  /**
   * Releases removals that nothing leads to any more.
   *
   * @param names What the client asks for; it keeps nothing else.
   * @returns Names whose removal may be sent now.
   */
  release(names: NameSet, clearedTo: number, nowMs: number): Names {
    if (this.#held === undefined) return NO_NAMES;
    this.#held.dropAllBut((name) => names.covers(name));
    const released = this.#held.release(clearedTo, nowMs);
    if (released.size === 0) return NO_NAMES;
    // A name may be back before the client receives its removal.
    for (const [name, had] of released) this.acks.remember(name, had);
    return new Set(released.keys());
  }
}

/**
 * The resources of one kind that a client is sent although they did not change:
 * names that it requested again, endpoints whose cluster changed, and names
 * that do not exist.
 */
export class PendingNames {
  /** A response is sent even when it is empty. */
  mustAnswer = false;
  /** The client asked for some of it, so it waits for no other kind. */
  isAwaited = false;
  #names: Names = NO_NAMES;
  #asked: Names = NO_NAMES;
  #released: Names = NO_NAMES;

  get names(): Names {
    return this.#names;
  }

  /** The names among them that the client requested again. */
  get asked(): Names {
    return this.#asked;
  }

  get isNothing(): boolean {
    return this.#names.size === 0 && !this.mustAnswer;
  }

  /** Whether the removal of a name may be sent. */
  reportsRemoval(name: string): boolean {
    return this.#asked.has(name) || this.#released.has(name);
  }

  add(names: Names): void {
    this.#names = union(this.#names, names);
  }

  /** The client requests names for the first time, or again. */
  noteAsked(names: Names): void {
    this.isAwaited = true;
    this.#asked = union(this.#asked, names);
  }

  /** They are removed, and nothing that the client has leads to them. */
  noteReleased(names: Names): void {
    this.#released = names;
  }

  /** A response is sent: only `rest` is left. */
  reset(rest: Names): void {
    this.#names = rest;
    this.mustAnswer = false;
    this.isAwaited = false;
    this.#asked = NO_NAMES;
    this.#released = NO_NAMES;
  }
}

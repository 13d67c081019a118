/**
 * What a client asked for of one kind, what it was told, and what is to be told
 * to it: all that SotW and Delta have in common. What it makes of that is for
 * `uptake.ts`.
 *
 * A client is told what differs between what it was told last (`told`) and what
 * there is now, cut to what it asked for, and what it is owed beside that: names
 * that it asked for anew, endpoints whose cluster changed. Both are found once
 * for all clients that go the same way, so one whose names did not change costs
 * a few lookups.
 *
 * One response is in flight; what changes meanwhile is found when it was
 * answered, and is then one difference, however often it changed.
 *
 * Reading order: `observe`, `take`, `noteAnswer`, then `uptake.ts`.
 *
 * @module
 */

import type {
  DiscoveryMode,
  DiscoveryReply,
  ErrorDetail,
} from "../../../proto/xds/discovery.ts";
import {
  isWholeState,
  type Resource,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import { type ByName, changedNames } from "../view.ts";
import { type Holding, holdingsOf } from "./holdings.ts";
import { type NameSet, NOTHING_NAMED } from "./name_set.ts";
import { type Parking, resourcesNamedIn } from "./parking.ts";
import { HeldRemovals } from "./removals.ts";
import { ReplyLog } from "./reply_log.ts";
import { firstPart, replyOf, select, type Selection } from "./selection.ts";
import {
  type Names,
  namesOfList,
  NO_NAMES,
  union,
  within,
} from "./shared_names.ts";
import type { KindStatus } from "./stream_status.ts";
import { Uptake } from "./uptake.ts";

/** A response, and the names that it brings something new of. */
export interface Taken {
  readonly reply: DiscoveryReply;
  readonly fresh: Names;
}

/** When something is observed. */
export interface Moment {
  /** Counts up with each view of the stream. */
  readonly generation: number;
  readonly nowMs: number;
  /** Whether what is gone stays until its parents let go. */
  readonly holdsRemovals: boolean;
  /** Whether the client is slow, as its stream knows. */
  readonly isLate: boolean;
}

const NO_RESOURCES: ByName = new Map();

/** See the module description. */
export abstract class Subscription {
  readonly kind: ResourceKind;
  #names: NameSet = NOTHING_NAMED;
  /** Absent before the first view. */
  protected told: ByName | undefined;
  /** What there is. */
  protected now: ByName = NO_RESOURCES;
  protected owed: Names = NO_NAMES;
  /** There is an answer even when it says nothing. */
  protected mustAnswer = false;
  protected readonly log = new ReplyLog();
  protected readonly uptake: Uptake;
  protected held: HeldRemovals | undefined;
  /** Something is owed because the client asked for it, so it waits for none. */
  protected isAsked = false;
  /** Names among what is owed that the client asked for anew. */
  #asked: Names = NO_NAMES;
  /** Names among it that are gone, and may be told as such. */
  #released: Names = NO_NAMES;
  #generation = 0;
  /** Of the view that `told` is of. */
  #toldGeneration = 0;
  #clearedTo = 0;
  /** Whether responses have the whole state, and are never less than that. */
  protected readonly isWhole: boolean;
  /** Whether a response names what is gone, else it just is not in it. */
  readonly #namesGone: boolean;

  constructor(kind: ResourceKind, mode: DiscoveryMode) {
    this.kind = kind;
    this.#namesGone = mode === "delta";
    this.isWhole = mode === "sotw" && isWholeState(kind);
    this.uptake = new Uptake(this.isWhole);
  }

  /** What has to be told before any change of it, now that it is known. */
  protected abstract firstOwed(now: ByName): Names;

  /**
   * What a response with news of `names` says.
   *
   * @param owed Those of them that are told whether they changed or not.
   */
  protected abstract compose(names: Names, owed: Names): Selection;

  /** What the client refuses, if it does. */
  protected get parking(): Parking | undefined {
    return this.uptake.parking;
  }

  /** What the client asks for. */
  protected get names(): NameSet {
    return this.#names;
  }

  /** What it does not ask for any more, it may ask for afresh. */
  protected set names(names: NameSet) {
    this.#names = names;
    this.parking?.forgetUnasked(names);
  }

  /** Whether the client waits for something that it asked for. */
  get isAwaited(): boolean {
    return this.isAsked;
  }

  get isEmpty(): boolean {
    return this.#names.isEmpty;
  }

  /** Characters of what is asked for. */
  get namesLength(): number {
    return this.#names.length;
  }

  /** Whether something is gone that the client was not told of. */
  get isHolding(): boolean {
    return this.held !== undefined && this.held.size > 0;
  }

  /** Nonce of the last response; empty before the first. */
  get nonce(): string {
    return this.log.nonce;
  }

  /**
   * The generation of views up to which the client has acknowledged everything
   * of this kind.
   */
  get clearedTo(): number {
    return this.#clearedTo;
  }

  /** When there may be something without a request or a view; else Infinity. */
  get dueMs(): number {
    const heldMs = this.held?.dueMs ?? Infinity;
    const { dueMs } = this.log;
    return dueMs < heldMs && this.#hasNews() ? dueMs : heldMs;
  }

  /** Whether there is something to be told that waits for an answer. */
  isBlocked(nowMs: number): boolean {
    return this.log.isWaiting(nowMs) && this.#hasNews();
  }

  // --- What there is ---------------------------------------------------------

  /**
   * Notes that there is nothing new; else {@linkcode observe} has to take it.
   *
   * @returns Whether that is so.
   */
  stays(now: ByName, generation: number): boolean {
    if (this.told !== now) return false;
    this.now = now;
    this.#generation = generation;
    this.#toldGeneration = generation;
    this.#settle();
    return true;
  }

  /** Takes what there is now. */
  observe(now: ByName, moment: Moment): void {
    const { generation, nowMs, holdsRemovals, isLate } = moment;
    this.#generation = generation;
    this.now = now;
    if (this.told === undefined) {
      this.told = now;
      this.owe(this.firstOwed(now));
    }
    if (this.told !== now) {
      if (holdsRemovals) this.#holdGone(nowMs);
      this.parking?.forgetGone(now);
      this.held?.look((name) => now.has(name), generation, nowMs);
      const news = this.#news();
      if (news.size === 0) this.#advance();
      else if (isLate || this.log.isSlow(nowMs)) this.#letGo(news);
    } else this.#toldGeneration = generation;
    this.#settle();
  }

  /** The client has, or is owed, all that there is now. */
  #advance(): void {
    this.told = this.now;
    this.#toldGeneration = this.#generation;
    if (this.isHolding) this.#dropBack();
  }

  /** What was gone is back, and maybe another one. */
  #dropBack(): void {
    for (const kept of this.held!.resources) {
      const { name } = kept;
      const back = this.now.get(name);
      if (back === undefined || this.held!.hasExactly(back)) continue;
      this.uptake.remember(name, this.held!.takenOf(name));
    }
    this.held!.dropAllBut((name) => !this.now.has(name));
  }

  /** Lets go of what is gone, as far as its parents have. */
  release(clearedTo: number, nowMs: number): void {
    if (this.held === undefined) return;
    this.held.dropAllBut((name) => this.names.covers(name));
    const released = this.held.release(clearedTo, nowMs);
    if (released.length === 0) return;
    this.#released = new Set(released);
    this.owe(this.#released);
  }

  /** Something beside what changes is to be told. */
  protected owe(names: Names): void {
    this.owed = union(this.owed, within(names, this.names));
  }

  /** The client asks for names that it did not ask for, or asks anew. */
  protected answer(names: Names): void {
    this.isAsked = true;
    this.#asked = union(this.#asked, names);
    this.owe(names);
  }

  #holdGone(nowMs: number): void {
    const told = this.told!;
    const changed = within(changedNames(told, this.now), this.names);
    for (const name of select(changed, this.now).missing) {
      const had = told.get(name);
      // Asked for anew, it is not there; released, it is only not told yet.
      const isToTell = this.#asked.has(name) || this.#released.has(name);
      if (had === undefined || isToTell) continue;
      this.#hold(had, nowMs);
    }
  }

  /** What was told stays while it is gone, as far as the client has it. */
  #hold(told: Resource, nowMs: number): void {
    const had = this.uptake.had(told, this.owed.has(told.name));
    // What it refused it may have applied.
    const kept = had ?? (this.#namesGone ? told : undefined);
    if (kept === undefined) return;
    const knowledge = had === told ? "exact" : had ? "good" : "refused";
    this.held ??= new HeldRemovals();
    this.held.hold(kept, knowledge, this.#generation, nowMs);
  }

  /**
   * What is sent of `resource`: if it was refused, what the client took last, and
   * that only to who has to be told something. A suspect is tried again then.
   */
  protected sendable(resource: Resource, owed: Names): Resource | undefined {
    const isOwed = owed.has(resource.name);
    if (isOwed && this.parking?.suspects(resource)) return resource;
    const taken = this.uptake.taken(resource);
    return taken === resource || isOwed ? taken : undefined;
  }

  /** Names that are to be told, and are not what was told last. */
  #news(): Names {
    const { told, now } = this;
    if (told === undefined || told === now) return NO_NAMES;
    const changed = within(changedNames(told, now), this.names);
    const { resources, missing } = select(changed, now);
    if (!this.isHolding) {
      if (missing.length === 0) return changed;
      const tellsGone = this.#namesGone || this.isWhole;
      return tellsGone ? changed : namesOfList(resources);
    }
    const news = new Set<string>();
    for (const name of changed) {
      const back = now.get(name);
      const isKnown = back === undefined
        ? this.held!.get(name) !== undefined
        : this.held!.hasExactly(back);
      if (!isKnown) news.add(name);
    }
    return news;
  }

  #hasNews(): boolean {
    return this.mustAnswer || this.owed.size > 0 || this.#news().size > 0;
  }

  /** The old state is a large thing: what matters of it is written down. */
  #letGo(news: Names): void {
    this.uptake.letGo(this.told!, news);
    this.owed = union(this.owed, news);
    this.#advance();
  }

  #settle(): void {
    const { last } = this.log;
    const isSettled = (last === "none" || last === "taken") &&
      this.owed.size === 0 && !this.mustAnswer && !this.isHolding;
    if (isSettled) this.#clearedTo = this.#toldGeneration;
  }

  // --- What is told ----------------------------------------------------------

  /** What may be told now; it counts as told, see {@linkcode noteSent}. */
  take(nowMs: number): Taken | undefined {
    if (this.told === undefined || this.log.isWaiting(nowMs)) return undefined;
    const owed = within(this.owed, this.names);
    const names = union(owed, this.#news());
    if (names.size === 0 && !this.mustAnswer) {
      this.#setOwed(NO_NAMES);
      this.#settle();
      return undefined;
    }
    const { selection, rest } = this.#select(names, owed);
    const reply = replyOf(this.kind, selection, this.#namesGone);
    const isSaid = this.mustAnswer || this.#says(reply);
    const before = this.told;
    this.#setOwed(rest);
    this.#advance();
    if (!isSaid) {
      if (rest.size > 0) return this.take(nowMs);
      this.#settle();
      return undefined;
    }
    const fresh = this.#freshOf(names, reply);
    const { resources } = reply;
    this.uptake.sent({ resources, before, owed, fresh });
    return { reply, fresh };
  }

  /** What was taken has been given a nonce. */
  noteSent({ version }: DiscoveryReply, nonce: string, nowMs: number): void {
    this.log.noteSent(version, nonce, nowMs);
  }

  /** What is left after a response. */
  #setOwed(rest: Names): void {
    this.owed = rest;
    this.mustAnswer = false;
    this.isAsked = false;
    this.#asked = NO_NAMES;
    this.#released = NO_NAMES;
  }

  /** Names that a response brings something new of, as far as the client knows. */
  #freshOf(names: Names, { resources }: DiscoveryReply): Names {
    if (!this.isWhole) return namesOfList(resources);
    const fresh = union(this.uptake.untaken(), names);
    const changed = within(fresh, this.names);
    if (this.parking === undefined && !this.isHolding) {
      return namesOfList(select(changed, this.now).resources);
    }
    // What stands in for something, or stays, is new to who does not have it.
    return namesOfList(resources.filter(({ name }) => changed.has(name)));
  }

  #select(
    names: Names,
    owed: Names,
  ): { selection: Selection; rest: Names } {
    if (this.isWhole) {
      return { selection: this.compose(names, owed), rest: NO_NAMES };
    }
    const queued = this.parking?.queueSuspects(names, owed, this.now);
    const part = firstPart(this.compose(queued?.first ?? names, owed));
    const rest = union(part.rest, queued?.later ?? NO_NAMES);
    return { selection: part.selection, rest };
  }

  #says({ resources, removed, version }: DiscoveryReply): boolean {
    if (!this.isWhole) return resources.length > 0 || removed.length > 0;
    // Taken or refused: the client has heard exactly this.
    return version !== this.log.version;
  }

  // --- What is answered ------------------------------------------------------

  /**
   * The client speaks of the last response.
   *
   * @param wanted What it asked for when it did.
   */
  protected noteAnswer(
    error: ErrorDetail | undefined,
    wanted: NameSet,
    nowMs: number,
  ): void {
    if (error !== undefined) return this.#refuse(error, wanted, nowMs);
    if (this.log.last !== "open") return;
    this.log.noteTaken(nowMs);
    this.uptake.noteTaken(this.told!, this.owed);
    this.#settle();
  }

  #refuse(error: ErrorDetail, wanted: NameSet, nowMs: number): void {
    const resources = this.uptake.flight?.resources ?? [];
    const named = resourcesNamedIn(error.message, resources);
    this.log.noteRefused(error, named.length > 0 ? named : resources, nowMs);
    const { now, held } = this;
    const asked = this.#asked;
    this.owe(this.uptake.noteRefused(named, { now, held, wanted, asked }));
  }

  /** What the client has and should have, name by name; for people. */
  get holdings(): readonly Holding[] {
    const { names, told, now, owed, parking, held } = this;
    return holdingsOf({
      ...{ names, told, now, owed, parking, held },
      flight: this.uptake.flight,
      wasSent: this.log.last !== "none",
    });
  }

  /** For people. */
  get status(): KindStatus {
    return {
      kind: this.kind,
      isWildcard: this.names.isWildcard,
      nameCount: this.names.names.size,
      isBehind: this.#hasNews() || this.isHolding,
      parkedNames: this.parking?.names ?? [],
      ...this.log.status,
    };
  }
}

/**
 * What a client asked for of one kind, what it was told, and what it answered:
 * all that SotW and Delta have in common.
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
 * Reading order: `observe`, `take`, `noteAnswer`.
 *
 * @module
 */

import type {
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
import { NAME_LENGTH_MAX, type NameSet, NOTHING_NAMED } from "./name_set.ts";
import { NACK_MESSAGE_MAX, Parking, resourcesNamedIn } from "./parking.ts";
import { HeldRemovals } from "./removals.ts";
import { firstPart, replyOf, select, type Selection } from "./selection.ts";
import {
  type Names,
  namesOfList,
  NO_NAMES,
  union,
  within,
} from "./shared_names.ts";
import type {
  KindStatus,
  RefusedReply,
  StampedReply,
} from "./stream_status.ts";

/** A response that is not answered for so long does not hold up the next one. */
export const ANSWER_WAIT_MS = 10_000;

/**
 * A client that did not answer for so long is slow. What there was when it was
 * told is then let go of, and with it the knowledge of what came and went.
 */
export const SLOW_AFTER_MS = 1_000;

/** The response that is in flight. */
interface Flight {
  readonly resources: readonly Resource[];
  /** What was told before; absent when the client is slow. */
  readonly before: ByName | undefined;
  /** Names that it brought beside what had changed. */
  readonly owed: Names;
}

/**
 * - `none`: nothing was sent yet.
 * - `open`: it waits for its answer.
 * - `taken`, `refused`: it was answered.
 */
type LastReply = "none" | "open" | "taken" | "refused";

/** A response, and the names that it brings something new of. */
export interface Taken {
  readonly reply: DiscoveryReply;
  readonly fresh: Names;
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
  protected last: LastReply = "none";
  protected parking: Parking | undefined;
  protected held: HeldRemovals | undefined;
  protected staleRequests = 0;
  /** Something is owed because the client asked for it, so it waits for none. */
  isAsked = false;
  #generation = 0;
  /** Of the view that `told` is of. */
  #toldGeneration = 0;
  #clearedTo = 0;
  #flight: Flight | undefined;
  #sent: StampedReply | undefined;
  #acked: StampedReply | undefined;
  #nacked: RefusedReply | undefined;
  #replies = 0;
  #acks = 0;
  #nacks = 0;

  constructor(kind: ResourceKind) {
    this.kind = kind;
  }

  /** What has to be told before any change of it, now that it is known. */
  protected abstract firstOwed(now: ByName): Names;

  /** What a response with news of `names` says. */
  protected abstract compose(names: Names): Selection;

  /** Whether clients are told that something is gone. */
  protected abstract get tellsGone(): boolean;

  /** Whether a response names all that is gone, else it just is not in it. */
  protected abstract get namesGone(): boolean;

  /** What the client asks for. */
  protected get names(): NameSet {
    return this.#names;
  }

  /** What it does not ask for any more, it may ask for afresh. */
  protected set names(names: NameSet) {
    this.#names = names;
    this.parking?.forgetUnasked(names);
  }

  get isEmpty(): boolean {
    return this.#names.isEmpty;
  }

  /** Whether something is gone that the client was not told of. */
  get isHolding(): boolean {
    return this.held !== undefined && this.held.size > 0;
  }

  /** Nonce of the last response; empty before the first. */
  get nonce(): string {
    return this.#sent?.nonce ?? "";
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
    if (this.last !== "open" || !this.#hasNews()) return heldMs;
    return Math.min(heldMs, this.#sent!.atMs + ANSWER_WAIT_MS);
  }

  /** Whether there is something to be told that waits for an answer. */
  isBlocked(nowMs: number): boolean {
    return this.#isWaiting(nowMs) && this.#hasNews();
  }

  // --- What there is ---------------------------------------------------------

  /**
   * Takes what there is now.
   *
   * @param generation Counts up with each view of the stream.
   * @param holdsRemovals Whether what is gone stays until its parents let go.
   */
  observe(
    now: ByName,
    generation: number,
    nowMs: number,
    holdsRemovals: boolean,
  ): void {
    this.#generation = generation;
    this.now = now;
    if (this.told === undefined) {
      this.told = now;
      this.owe(this.firstOwed(now));
    }
    if (this.told !== now) {
      if (holdsRemovals) this.#holdGone(nowMs);
      this.held?.dropAllBut((name) => !now.has(name));
      const news = this.#news();
      if (news.size === 0) this.told = now;
      else if (this.#isSlow(nowMs)) this.#letGo(news);
    }
    if (this.told === now) this.#toldGeneration = generation;
    this.#settle();
  }

  /** Lets go of what is gone, as far as its parents have. */
  release(clearedTo: number, nowMs: number): void {
    if (this.held === undefined) return;
    this.held.dropAllBut((name) => this.names.covers(name));
    const released = this.held.release(clearedTo, nowMs);
    if (released.length > 0) this.owe(new Set(released));
  }

  /** Something beside what changes is to be told. */
  protected owe(names: Names): void {
    this.owed = union(this.owed, within(names, this.names));
  }

  #holdGone(nowMs: number): void {
    const told = this.told!;
    const changed = within(changedNames(told, this.now), this.names);
    for (const name of select(changed, this.now).missing) {
      const had = told.get(name);
      const kept = had === undefined ? undefined : this.taken(had);
      // What is owed has been let go of, and is only not told yet.
      if (kept === undefined || this.owed.has(name)) continue;
      this.held ??= new HeldRemovals();
      this.held.hold(kept, this.#generation, nowMs);
    }
  }

  /** What the client has if it was told `resource`: it may have refused that. */
  protected taken(resource: Resource): Resource | undefined {
    return this.parking?.holds(resource)
      ? this.parking.standIn(resource)
      : resource;
  }

  /** Names that are to be told, and are not what was told last. */
  #news(): Names {
    const { told, now } = this;
    if (told === undefined || told === now) return NO_NAMES;
    const changed = within(changedNames(told, now), this.names);
    const { resources, missing } = select(changed, now);
    if (missing.length === 0) return changed;
    if (!this.tellsGone) return namesOfList(resources);
    if (!this.isHolding) return changed;
    const news = new Set<string>();
    for (const name of changed) {
      if (this.held!.get(name) === undefined) news.add(name);
    }
    return news;
  }

  #hasNews(): boolean {
    return this.mustAnswer || this.owed.size > 0 || this.#news().size > 0;
  }

  #isSlow(nowMs: number): boolean {
    return this.last === "open" && nowMs >= this.#sent!.atMs + SLOW_AFTER_MS;
  }

  #letGo(news: Names): void {
    this.owed = union(this.owed, news);
    this.told = this.now;
    if (this.#flight !== undefined) {
      this.#flight = { ...this.#flight, before: undefined };
    }
  }

  #settle(): void {
    const isSettled = (this.last === "none" || this.last === "taken") &&
      this.owed.size === 0 && !this.mustAnswer && !this.isHolding;
    if (isSettled) this.#clearedTo = this.#toldGeneration;
  }

  // --- What is told ----------------------------------------------------------

  /** What may be told now; it counts as told. */
  take(nonce: () => string, nowMs: number): Taken | undefined {
    if (this.told === undefined || this.#isWaiting(nowMs)) return undefined;
    const owed = within(this.owed, this.names);
    const names = union(owed, this.#news());
    this.isAsked = false;
    if (names.size === 0 && !this.mustAnswer) {
      this.owed = NO_NAMES;
      this.#settle();
      return undefined;
    }
    const { selection, rest } = this.#select(names);
    const reply = replyOf(this.kind, selection, this.namesGone);
    const isSaid = this.mustAnswer || this.#says(reply);
    const before = this.told;
    this.owed = rest;
    this.mustAnswer = false;
    this.told = this.now;
    this.#toldGeneration = this.#generation;
    if (!isSaid) {
      this.#settle();
      return undefined;
    }
    this.#flight = { resources: reply.resources, before, owed };
    this.#sent = { version: reply.version, nonce: nonce(), atMs: nowMs };
    this.last = "open";
    this.#replies++;
    const brought = this.#isWhole
      ? select(names, this.now).resources
      : reply.resources;
    return { reply, fresh: namesOfList(brought) };
  }

  #isWaiting(nowMs: number): boolean {
    return this.last === "open" && nowMs < this.#sent!.atMs + ANSWER_WAIT_MS;
  }

  /** SotW responses with the whole state are never less than that. */
  get #isWhole(): boolean {
    return !this.namesGone && isWholeState(this.kind);
  }

  #select(names: Names): { selection: Selection; rest: Names } {
    const selection = this.compose(names);
    return this.#isWhole ? { selection, rest: NO_NAMES } : firstPart(selection);
  }

  #says({ resources, removed, version }: DiscoveryReply): boolean {
    if (!this.#isWhole) return resources.length > 0 || removed.length > 0;
    // Taken or refused: the client has heard exactly this.
    return version !== this.#sent?.version;
  }

  // --- What is answered ------------------------------------------------------

  /** The client speaks of the last response. */
  protected noteAnswer(
    error: ErrorDetail | undefined,
    nowMs: number,
  ): void {
    if (error !== undefined) return this.#refuse(error, nowMs);
    if (this.last !== "open") return;
    this.last = "taken";
    this.#flight = undefined;
    this.#acks++;
    const { version, nonce } = this.#sent!;
    this.#acked = { version, nonce, atMs: nowMs };
    this.#nacked = undefined;
    if (this.parking !== undefined) {
      this.parking.forgetTaken(this.told!);
      if (this.parking.size === 0) this.parking = undefined;
    }
    this.#settle();
  }

  #refuse({ code, message }: ErrorDetail, nowMs: number): void {
    const flight = this.#flight;
    const resources = flight?.resources ?? [];
    const named = resourcesNamedIn(message, resources);
    this.#flight = undefined;
    this.last = "refused";
    this.#nacks++;
    // Without the rest of it a whole state would remove what is good.
    const isAll = named.length === 0 && !this.#isWhole;
    if (flight !== undefined) this.#park(isAll ? resources : named, flight);
    const blamed = named.length > 0 ? named : resources;
    this.#nacked = {
      version: this.#sent!.version,
      nonce: this.nonce,
      atMs: nowMs,
      code,
      message: message.slice(0, NACK_MESSAGE_MAX),
      names: blamed.map(({ name }) => name.slice(0, NAME_LENGTH_MAX)),
    };
  }

  #park(refused: readonly Resource[], flight: Flight): void {
    if (refused.length === 0) return;
    this.parking ??= new Parking();
    this.parking.forgetGone(this.told!);
    for (const resource of refused) {
      this.parking.park(resource, this.#goodBefore(resource, flight));
    }
  }

  /** What the client took last in the place of something that it refuses. */
  #goodBefore(
    resource: Resource,
    { before, owed }: Flight,
  ): Resource | undefined {
    const { name, version } = resource;
    const good = before === undefined ? resource : before.get(name);
    // It may never have had that; and to leave it out of a whole state is to
    // remove it, which is worse than to repeat what it took once.
    if (good?.version === version) {
      return this.#isWhole && !owed.has(name) ? resource : undefined;
    }
    return owed.has(name) ? undefined : good;
  }

  /** What the client has and should have, name by name; for people. */
  get holdings(): readonly Holding[] {
    const { names, told, now, owed, parking, held, last } = this;
    const flight = last === "open" ? this.#flight : undefined;
    const wasSent = last !== "none";
    return holdingsOf({
      names,
      told,
      now,
      owed,
      parking,
      held,
      flight,
      wasSent,
    });
  }

  /** For people. */
  get status(): KindStatus {
    return {
      kind: this.kind,
      isWildcard: this.names.isWildcard,
      nameCount: this.names.names.size,
      sent: this.#sent,
      acked: this.#acked,
      nacked: this.#nacked,
      inFlightSinceMs: this.last === "open" ? this.#sent!.atMs : undefined,
      isBehind: this.#hasNews() || this.isHolding,
      parkedNames: this.parking?.names ?? [],
      replies: this.#replies,
      acks: this.#acks,
      nacks: this.#nacks,
      staleRequests: this.staleRequests,
    };
  }
}

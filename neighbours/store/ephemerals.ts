/**
 * Texts that live as long as the process that said them: how servers tell each
 * other that they are there, and what they have.
 *
 * Each owner has one text about itself (`member`) and further ones; without the
 * first nobody looks at the others. All of them go when the owner ends, or when
 * nothing is heard of it any more. Owners' names and texts are hostile, and
 * nothing here reads the texts.
 *
 * Some places know who lives (etcd's leases). In all others an owner lives that
 * writes its first text again and again. That is seen by the record's changing,
 * and only while this process sees its own do so: no two clocks are compared, and
 * a place that stands still ends nobody.
 *
 * @module
 */

import { unawaited, worldly } from "../../platform/errors/internal_errors.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { StoreError } from "./store_error.ts";

/** What an owner says of itself. */
export const MEMBER_PART = "member";

/** The texts that there are. */
export const PART_NAME = /^(?:member|agents-\d\d)$/;

/** An owner that says nothing for so long is gone, unless options say otherwise. */
export const PEER_TIMEOUT_MS = 10_000;

/** Renewals in the time after which an owner is gone. */
export const RENEWALS = 4;

/** What an owner that is gone has left is removed after so many times that long. */
export const REMOVED_AFTER = 10;

/** Owners that are looked at, with those that are gone and have left something. */
const OWNERS_MAX = 1_024;

/** After a write that failed, the next one comes then. */
const REWRITE_MS = 1_000;

/** How long the end may wait until all is taken back. */
const STOP_MS = 2_000;

/** One text of one owner; without text it is gone. */
export interface PartChange {
  readonly instanceId: string;
  readonly part: string;
  readonly text: string | undefined;
}

/** What is reported of all owners. */
export interface EphemeralEvents {
  /** Of one moment; what this process says itself is included. */
  changed(changes: readonly PartChange[]): void;
  /** Everything was seen, and is followed from here on. */
  following(): void;
  /**
   * It cannot be seen, or not be written, now; what was seen before may be old.
   *
   * @param message A sentence without its full stop.
   */
  problem(message: string): void;
}

/** The contract: what this process says, and what all say. */
export interface Ephemerals {
  watch(events: EphemeralEvents): void;
  /** From now on; without text not any more. Kept until `close`. */
  put(part: string, text: string | undefined): void;
  /** Takes everything back at once. Settles soon, come what may. */
  close(): Promise<void>;
}

/** A text as a place shows it. */
export interface Sight extends PartChange {
  /** Another one with each renewal. */
  readonly version: string;
  /** It was not renewed for long, as far as the place knows; for the first sight. */
  readonly isOld?: boolean;
}

/** What a place reports. */
export interface PlaceSights {
  changed(sights: readonly Sight[]): void;
  /** All there is. */
  listed(sights: readonly Sight[]): void;
  /** Whether all is followed, or held, and if not, why: a sentence. */
  state(doing: "followed" | "held", problem?: string): void;
  /** What was written is lost, or can be written only now; without a name all. */
  rewrite(part?: string): void;
}

/** What differs between places. All of it rejects with `StoreError`. */
export interface EphemeralPlace {
  /** The place knows who lives, and ends what is not renewed. */
  readonly isLeased: boolean;
  readonly isReady: boolean;
  follow(sights: PlaceSights): void;
  /** A renewal is due: of those that have to look, this one looks now. */
  look?(): void;
  /** Writes a text of this process; without text removes it. */
  write(part: string, text: string | undefined): Promise<void>;
  /** Removes what an owner has left that is gone. */
  remove(instanceId: string, part: string): Promise<void>;
  /** Ends, with all that this process has written there. */
  stop(parts: readonly string[]): Promise<void>;
}

/** Who says it, and how long a silence may be. */
export interface EphemeralOptions {
  readonly instanceId: string;
  readonly timeoutMs: number;
  readonly timers: Timers;
}

/** What is known of one owner. */
interface Owner {
  readonly parts: Map<string, Sight & { readonly text: string }>;
  readonly reported: Map<string, string>;
  isLive: boolean;
  /** When it was heard last, or found to be gone; milliseconds (clock). */
  sinceMs: number;
}

/** See the module description. */
export class EphemeralTexts implements Ephemerals {
  readonly #own = new Map<string, string>();
  readonly #unwritten = new Set<string>();
  readonly #owners = new Map<string, Owner>();
  /** What does not go well; nothing is followed yet. */
  readonly #problems = new Set<string>(["followed"]);
  readonly #closing = new AbortController();
  #events: EphemeralEvents | undefined;
  #writing: Promise<void> | undefined;
  #renewal: Timer | undefined;
  /** Since when nothing is followed. */
  #awayMs: number | undefined;

  constructor(
    private readonly place: EphemeralPlace,
    private readonly options: EphemeralOptions,
  ) {}

  watch(events: EphemeralEvents): void {
    this.#events = events;
    this.place.follow({
      changed: (sights) => this.#see(sights),
      listed: (sights) => this.#see([...this.#missingIn(sights), ...sights]),
      state: (doing, problem) => this.#note(doing, problem),
      rewrite: (part) => this.#mark(...part ? [part] : this.#own.keys()),
    });
    this.#renewSoon();
  }

  put(part: string, text: string | undefined): void {
    if (text === undefined) this.#own.delete(part);
    else this.#own.set(part, text);
    this.#mark(part);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#renewal?.cancel();
    const stopped = this.place.stop([...this.#own.keys()]);
    const ended = Promise.all([this.#writing, stopped]);
    await atMost(this.options.timers, STOP_MS, ended).catch((error) => {
      // It is gone for the others when it is not renewed.
      if (!(error instanceof StoreError)) throw error;
    });
  }

  // --- What this process says --------------------------------------------------

  #mark(...parts: readonly string[]): void {
    for (const part of parts) this.#unwritten.add(part);
    this.#writeNext();
  }

  #writeNext(): void {
    const isIdle = this.#writing === undefined && this.#unwritten.size > 0 &&
      this.#events !== undefined && this.place.isReady &&
      !this.#closing.signal.aborted;
    if (!isIdle) return;
    this.#writing = this.#writeOne().finally(() => {
      this.#writing = undefined;
      this.#writeNext();
    });
    unawaited("task", this.#writing);
  }

  async #writeOne(): Promise<void> {
    // Others live by the first text, and nobody looks at the rest without it.
    const part = this.#unwritten.has(MEMBER_PART)
      ? MEMBER_PART
      : [...this.#unwritten][0]!;
    this.#unwritten.delete(part);
    try {
      await this.place.write(part, this.#own.get(part));
      this.#note("written");
    } catch (error) {
      this.#unwritten.add(part);
      const isStores = (error: unknown) => error instanceof StoreError;
      this.#note("written", worldly("task", error, isStores).message);
      const { timers } = this.options;
      await pause(timers, REWRITE_MS, this.#closing.signal);
    }
  }

  #renewSoon(): void {
    if (this.place.isLeased) return;
    const { timers, timeoutMs } = this.options;
    this.#renewal = timers.after(timeoutMs / RENEWALS, () => {
      if (this.#own.has(MEMBER_PART)) this.#mark(MEMBER_PART);
      this.place.look?.();
      this.#judge();
      this.#renewSoon();
    });
  }

  /** Several things may fail; all is well when none does. */
  #note(doing: "followed" | "held" | "written", problem?: string): void {
    if (this.#closing.signal.aborted) return;
    if (doing === "followed") this.#follow(problem === undefined);
    if (problem !== undefined) {
      this.#problems.add(doing);
      this.#events!.problem(problem);
    } else if (this.#problems.delete(doing) && this.#problems.size === 0) {
      this.#events!.following();
    }
  }

  // --- What all say ------------------------------------------------------------

  *#missingIn(sights: readonly Sight[]): Iterable<Sight> {
    const found = new Set(sights.map(nameOf));
    for (const { parts } of this.#owners.values()) {
      for (const sight of parts.values()) {
        if (!found.has(nameOf(sight))) yield { ...sight, text: undefined };
      }
    }
    const { instanceId } = this.options;
    const own = [...this.#own.keys()]
      .filter((part) => !found.has(nameOf({ instanceId, part })));
    this.#mark(...own);
  }

  #see(sights: readonly Sight[]): void {
    if (this.#closing.signal.aborted) return;
    const touched = new Set<string>();
    for (const sight of sights) {
      const owner = this.#ownerOf(sight.instanceId);
      if (owner === undefined) continue;
      touched.add(sight.instanceId);
      this.#take(owner, sight);
    }
    this.#report(touched);
  }

  #ownerOf(instanceId: string): Owner | undefined {
    const known = this.#owners.get(instanceId);
    const isOwn = instanceId === this.options.instanceId;
    if (known !== undefined) return known;
    if (this.#owners.size >= OWNERS_MAX && !isOwn) return undefined;
    const owner: Owner = {
      ...{ parts: new Map(), reported: new Map() },
      ...{ isLive: false, sinceMs: this.options.timers.now() },
    };
    this.#owners.set(instanceId, owner);
    return owner;
  }

  #take(owner: Owner, sight: Sight): void {
    const { instanceId, part, text, version, isOld = false } = sight;
    const before = owner.parts.get(part);
    const isOwn = instanceId === this.options.instanceId;
    if (text === undefined) owner.parts.delete(part);
    else owner.parts.set(part, { ...sight, text });
    // What this process says was removed: it says so again.
    if (text === undefined && isOwn && this.#own.has(part)) this.#mark(part);
    const isSame = text !== undefined && before?.version === version;
    if (part !== MEMBER_PART || isSame) return;
    // Of an owner that died, unless its clock is wrong: then it writes again.
    const isLeft = before === undefined && isOld && !isOwn;
    owner.isLive = text !== undefined && !isLeft;
    owner.sinceMs = this.options.timers.now();
  }

  /** Tells what is other than what was told, all at once. */
  #report(instanceIds: Iterable<string>): void {
    const changes: PartChange[] = [];
    for (const instanceId of instanceIds) {
      const { parts, reported, isLive } = this.#owners.get(instanceId)!;
      for (const part of [...reported.keys()]) {
        if (isLive && parts.has(part)) continue;
        reported.delete(part);
        changes.push({ instanceId, part, text: undefined });
      }
      for (const { part, text } of isLive ? parts.values() : []) {
        if (reported.get(part) === text) continue;
        reported.set(part, text);
        changes.push({ instanceId, part, text });
      }
      if (parts.size === 0) this.#owners.delete(instanceId);
    }
    if (changes.length > 0) this.#events!.changed(changes);
  }

  // --- Who lives ---------------------------------------------------------------

  #follow(isFollowed: boolean): void {
    const now = this.options.timers.now();
    if (!isFollowed) this.#awayMs ??= now;
    else if (this.#awayMs !== undefined) {
      // Nobody was heard meanwhile, whoever was there.
      for (const owner of this.#owners.values()) {
        owner.sinceMs += now - this.#awayMs;
      }
      this.#awayMs = undefined;
    }
  }

  #judge(): void {
    if (this.#awayMs !== undefined) return;
    const { timers, timeoutMs, instanceId: own } = this.options;
    const now = timers.now();
    const isSilent = (owner: Owner | undefined) =>
      owner === undefined || now - owner.sinceMs >= timeoutMs;
    if (this.#own.has(MEMBER_PART) && isSilent(this.#owners.get(own))) return;
    const silent = [...this.#owners]
      .filter(([id, owner]) => id !== own && owner.isLive && isSilent(owner));
    for (const [, owner] of silent) {
      owner.isLive = false;
      owner.sinceMs = now;
    }
    this.#report(silent.map(([id]) => id));
    for (const [id, owner] of this.#owners) {
      const isLeft = !owner.isLive && id !== own &&
        now - owner.sinceMs > REMOVED_AFTER * timeoutMs;
      if (isLeft) this.#removeAll(id, owner);
    }
  }

  #removeAll(instanceId: string, owner: Owner): void {
    // Should it fail, it is tried again so much later.
    owner.sinceMs = this.options.timers.now();
    for (const part of owner.parts.keys()) {
      const removing = this.place.remove(instanceId, part).catch((error) => {
        if (!(error instanceof StoreError)) throw error;
      });
      unawaited("task", removing);
    }
  }
}

function nameOf({ instanceId, part }: Omit<PartChange, "text">): string {
  return `${instanceId}.${part}`;
}

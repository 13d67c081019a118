/**
 * Texts that live as long as the process that wrote them: with these, servers
 * announce themselves and their agents to each other.
 *
 * Each owner has one text about itself (`member`) and further ones; without the
 * first the others are ignored. All of them go when the owner ends, or becomes
 * silent. Owners' names and texts are hostile, and no code here parses the
 * texts.
 *
 * Some places know who lives (etcd's leases). In all others an owner lives that
 * writes its first text again and again. That is seen by the record's changing,
 * and only while this process sees its own do so: no two clocks are compared,
 * and a place that stands still ends nobody.
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

/** A silent owner is gone after this time, unless options say otherwise. */
export const PEER_TIMEOUT_MS = 10_000;

/** Renewals in the time after which an owner is gone. */
export const RENEWALS = 4;

/**
 * The leftovers of a departed owner are removed after this many times that
 * time.
 */
export const REMOVED_AFTER = 10;

/** Limit on owners that are read, departed ones with leftovers included. */
const OWNERS_MAX = 1_024;

/** Wait after a failed write. */
const REWRITE_MS = 1_000;

/** How long the end may wait until all is taken back. */
const STOP_MS = 2_000;

/** One text of one owner; without text it is gone. */
export interface PartChange {
  readonly instanceId: string;
  readonly part: string;
  readonly text: string | undefined;
}

/** Reports about all owners. */
export interface EphemeralEvents {
  /** Changes of one moment; this process's own are included. */
  changed(changes: readonly PartChange[]): void;
  /** Everything was seen, and is followed from here on. */
  following(): void;
  /**
   * The texts cannot be read, or not be written, now; known ones may be old.
   *
   * @param message A sentence without its full stop.
   */
  problem(message: string): void;
}

/** The contract: what this process says, and what all say. */
export interface Ephemerals {
  watch(events: EphemeralEvents): void;
  /** Writes the text; without text, removes it. Kept until `close`. */
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

/** Reports of a place. */
export interface PlaceSights {
  changed(sights: readonly Sight[]): void;
  /** All there is. */
  listed(sights: readonly Sight[]): void;
  /** Whether all is followed, or held, and if not, why: a sentence. */
  state(doing: "followed" | "held", problem?: string): void;
  /** Written texts are lost, or can be written only now; without a name all. */
  rewrite(part?: string): void;
}

/** What differs between places. All of it rejects with `StoreError`. */
export interface EphemeralPlace {
  /** The place knows which owners live, and removes texts without renewal. */
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

/** The owner, and the longest silence. */
export interface EphemeralOptions {
  readonly instanceId: string;
  readonly timeoutMs: number;
  readonly timers: Timers;
}

/** The knowledge about one owner. */
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
  /** The present problem; no text is followed yet. */
  readonly #problems = new Set<string>(["followed"]);
  readonly #closing = new AbortController();
  #events: EphemeralEvents | undefined;
  #writing: Promise<void> | undefined;
  #renewal: Timer | undefined;
  /** Since when texts are not followed. */
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
      // Without renewal it expires for the others.
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
    // Other texts depend on the first one, and are ignored without it.
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
    // The owner has died, unless its clock is wrong: then it writes again.
    const isLeft = before === undefined && isOld && !isOwn;
    owner.isLive = text !== undefined && !isLeft;
    owner.sinceMs = this.options.timers.now();
  }

  /** Reports all differences to the last report at once. */
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
      // No owner could be heard meanwhile, even if it was alive.
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

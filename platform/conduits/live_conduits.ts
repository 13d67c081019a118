/**
 * The conduits that a process has now, and the dials that are under way: what
 * `conn list`, `top` and a dashboard show. A server, an agent and a service
 * proxy have one each.
 *
 * It is always on. Each conduit costs an entry; reads and writes cost nothing
 * beyond the two sums of `ObservedConduit`. A tick every five seconds, only
 * while there are conduits or rates, notes each conduit's progress.
 *
 * @module
 */

import { IdList } from "./id_list.ts";
import { LiveConduit, type LiveOrigin } from "./live_conduit.ts";
import { type Flow, RATE_TICK_MS, RateSamples } from "./rate_samples.ts";
import { guarded } from "../errors/internal_errors.ts";
import type { ConnectionFacts } from "../log/connection_log.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";

/** Conduits that are looked at in one turn of the event loop, at a tick. */
export const TICK_SLICE = 10_000;

/** A dial under way, as its maker shows it. */
export interface LiveDial {
  readonly id: ConnectionId;
  /** When it was asked for, by the clock. */
  readonly askedMs: number;
  readonly facts: ConnectionFacts;
  /** The list's: where it stands there. */
  place?: number;
  /** Ends it: its caller is answered with `reason`. */
  kill(reason: string): void;
}

/** All of a process together; bytes since it began, rates of the last seconds. */
export interface Totals {
  readonly toTargetBytes: number;
  readonly fromTargetBytes: number;
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  readonly dialRate: number;
  readonly failedDials: number;
}

/** How far all were at a tick. */
interface Mark {
  readonly atMs: number;
  readonly toTarget: number;
  readonly fromTarget: number;
  readonly dials: number;
}

/** See the module description. */
export class LiveConduits {
  readonly #conduits = new IdList<LiveConduit>();
  readonly #dials = new IdList<LiveDial>();
  readonly #samples: RateSamples;
  readonly dialTimes = new DialTimes();
  /** Bytes of conduits that are over. */
  #gone = { toTarget: 0, fromTarget: 0 };
  #dialed = 0;
  #failed = 0;
  #last: Mark;
  #before: Mark;
  #tick: Timer | undefined;
  #dueMs = 0;
  #latenessMs = 0;
  #isStopped = false;

  constructor(private readonly timers: Timers) {
    const nowMs = timers.now();
    this.#samples = new RateSamples(nowMs);
    this.#last = { atMs: nowMs, toTarget: 0, fromTarget: 0, dials: 0 };
    this.#before = this.#last;
  }

  /** Conduits that are open. */
  get size(): number {
    return this.#conduits.size;
  }

  /** The clock of `askedMs` and other times. */
  get nowMs(): number {
    return this.timers.now();
  }

  /** How late the last tick was: the event loop was busy for this long. */
  get latenessMs(): number {
    return this.#latenessMs;
  }

  /** A dial begins; {@linkcode dialOver} follows. */
  dialBegins(dial: LiveDial): void {
    this.#arm();
    this.#dialed++;
    dial.place = this.#dials.add(dial);
  }

  dialOver(dial: LiveDial): void {
    if (dial.place !== undefined) this.#dials.remove(dial, dial.place);
  }

  /** A dial has failed, whether or not it ever began. */
  dialFailed(): void {
    this.#failed++;
  }

  /**
   * Used in place of `new ObservedConduit`: the same, and listed until it is
   * over.
   */
  open(
    conduit: Conduit,
    observer: ConduitObserver,
    facts: ConnectionFacts,
    origin: LiveOrigin,
  ): LiveConduit {
    const nowMs = origin.openedMs ?? this.timers.now();
    this.dialTimes.add(nowMs, nowMs - origin.askedMs);
    const place = this.#conduits.nextPlace;
    const live = new LiveConduit(
      conduit,
      observer,
      facts,
      origin,
      this,
      place,
      nowMs,
    );
    this.#conduits.add(live);
    this.#samples.begin(place, nowMs);
    this.#arm();
    return live;
  }

  /** @private For a conduit of this list, which is over. */
  left(conduit: LiveConduit): void {
    if (!this.#conduits.remove(conduit, conduit.place)) return;
    this.#gone.toTarget += conduit.sentBytes;
    this.#gone.fromTarget += conduit.receivedBytes;
  }

  /** All that are open, in no order. */
  all(): Iterable<LiveConduit> {
    return this.#conduits;
  }

  /** All that are under way. */
  get dials(): Iterable<LiveDial> & { readonly size: number } {
    return this.#dials;
  }

  /** Whether one that is open, or a dial, has this id. */
  has(id: ConnectionId): boolean {
    return this.find(id) !== undefined;
  }

  find(id: string): LiveConduit | LiveDial | undefined {
    return this.#conduits.find(id) ?? this.#dials.find(id);
  }

  /**
   * Ends a conduit, which its both sides see as a reset, or a dial.
   *
   * @returns Whether there was such a one.
   */
  kill(id: string, reason: string): boolean {
    const found = this.find(id);
    if (found === undefined) return false;
    guarded("conduit", () => {
      if (found instanceof LiveConduit) found.reset(reason);
      else found.kill(reason);
    });
    return true;
  }

  /** How fast a conduit of this list moves. */
  flow(conduit: LiveConduit, nowMs: number): Flow {
    return this.#samples.flow(
      conduit.place,
      nowMs,
      conduit.openedMs,
      conduit.sentBytes,
      conduit.receivedBytes,
    );
  }

  totals(): Totals {
    const now = this.#mark();
    const before = this.#before;
    const seconds = Math.max(1_000, now.atMs - before.atMs) / 1_000;
    const rate = (what: "toTarget" | "fromTarget" | "dials") =>
      (now[what] - before[what]) / seconds;
    return {
      toTargetBytes: now.toTarget,
      fromTargetBytes: now.fromTarget,
      toTargetRate: Math.round(rate("toTarget")),
      fromTargetRate: Math.round(rate("fromTarget")),
      dialRate: Math.round(rate("dials") * 10) / 10,
      failedDials: this.#failed,
    };
  }

  /** Sets no more timers; items stay listed until they are over. */
  stop(): void {
    this.#isStopped = true;
    this.#tick?.cancel();
    this.#tick = undefined;
  }

  /** Something has moved since the tick before: rates would go on without end. */
  get #isFresh(): boolean {
    const { toTarget, fromTarget, dials } = this.#before;
    const last = this.#last;
    return last.toTarget !== toTarget || last.fromTarget !== fromTarget ||
      last.dials !== dials;
  }

  #mark(): Mark {
    let { toTarget, fromTarget } = this.#gone;
    for (const conduit of this.#conduits) {
      toTarget += conduit.sentBytes;
      fromTarget += conduit.receivedBytes;
    }
    const atMs = this.timers.now();
    return { atMs, toTarget, fromTarget, dials: this.#dialed };
  }

  #arm(): void {
    if (this.#tick !== undefined || this.#isStopped) return;
    // There was nothing for a while: no rate is of that time.
    if (this.timers.now() - this.#last.atMs > 2 * RATE_TICK_MS) {
      this.#last = this.#before = this.#mark();
      this.#samples.tick(this.#last.atMs);
      this.#samples.tick(this.#last.atMs);
    }
    this.#dueMs = this.timers.now() + RATE_TICK_MS;
    this.#tick = this.timers.after(RATE_TICK_MS, () => this.#onTick());
  }

  #onTick(): void {
    this.#tick = undefined;
    this.#before = this.#last;
    this.#last = this.#mark();
    this.#latenessMs = Math.max(0, this.#last.atMs - this.#dueMs);
    this.#samples.tick(this.#last.atMs);
    this.#note(0);
  }

  #note(from: number): void {
    const to = Math.min(this.#conduits.places, from + TICK_SLICE);
    for (let place = from; place < to; place++) {
      const conduit = this.#conduits.at(place);
      if (conduit === undefined) continue;
      this.#samples.take(place, conduit.sentBytes, conduit.receivedBytes);
    }
    if (to < this.#conduits.places) {
      this.#tick = this.timers.after(0, () => {
        this.#tick = undefined;
        this.#note(to);
      });
    } else if (this.size > 0 || this.#isFresh) this.#arm();
    else {
      // Places of those that are over wait for the next ones until all are.
      this.#conduits.shrink();
    }
  }
}

/** Enough for a 99th percentile; a busy server's are of its last seconds. */
const DIAL_TIMES_MAX = 2_048;

/** Older samples tell nothing about the present. */
const DIAL_TIMES_AGE_MS = 300_000;

/**
 * How long the dials of the last minutes took: a ring, written once for each
 * dial, and sorted when it is read.
 */
class DialTimes {
  readonly #tookMs = new Float32Array(DIAL_TIMES_MAX);
  readonly #atMs = new Float64Array(DIAL_TIMES_MAX).fill(-Infinity);
  #next = 0;

  add(nowMs: number, tookMs: number): void {
    this.#tookMs[this.#next] = tookMs;
    this.#atMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % DIAL_TIMES_MAX;
  }

  /**
   * @param shares Such as 0.5 for the median.
   * @param ageMs Older ones do not count.
   * @returns In milliseconds, in the order of `shares`; none without dials.
   */
  percentiles(
    nowMs: number,
    shares: readonly number[],
    ageMs: number = DIAL_TIMES_AGE_MS,
  ): readonly number[] {
    const since = nowMs - ageMs;
    const lately = this.#tookMs.filter((_, at) => this.#atMs[at]! >= since)
      .sort();
    if (lately.length === 0) return [];
    return shares.map((share) =>
      lately[Math.min(lately.length - 1, Math.floor(share * lately.length))]!
    );
  }
}

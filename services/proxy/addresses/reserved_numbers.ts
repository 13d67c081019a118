/**
 * Who has which number of a range of local addresses, and who had it: a service
 * that goes and comes back is found where it was, and nobody else is found there
 * meanwhile.
 *
 * Knows numbers and names; what a number means, and where all this is kept over a
 * restart, is others' business.
 *
 * @module
 */

/** How long the number of a service that is gone is kept for it. */
export const GONE_MS: number = 7 * 24 * 3_600_000;

/** Of services that are gone; the one that is gone longest is forgotten. */
export const GONE_MAX = 10_000;

/** One who has a number, or had it. */
export interface ReservedNumber {
  readonly owner: string;
  readonly number: number;
  /** Since when the owner is gone; absent: it is there. */
  readonly goneMs?: number;
}

export class ReservedNumbers {
  readonly #byOwner = new Map<string, ReservedNumber>();
  readonly #owners = new Map<number, string>();
  /** Those that are gone, the longest gone first. */
  readonly #gone = new Set<string>();
  /** Something is other than it was; set by the owner of the file. */
  onChanged: () => void = () => {};

  /**
   * @param kept Of an earlier life: all of them are gone until they come.
   * @param now Wall clock, in milliseconds.
   */
  constructor(
    kept: Iterable<ReservedNumber> = [],
    private readonly now: () => number = Date.now,
  ) {
    const gone = [...kept].map((one) => ({
      ...one,
      goneMs: one.goneMs ?? now(),
    }))
      .sort((a, b) => a.goneMs - b.goneMs);
    for (const one of gone) {
      // A number belongs to one; of two that claim it none is better.
      if (this.#owners.has(one.number) || this.#byOwner.has(one.owner)) {
        continue;
      }
      this.#put(one);
      this.#gone.add(one.owner);
    }
    this.#forget();
  }

  /** All, for who keeps them. */
  get all(): Iterable<ReservedNumber> {
    return this.#byOwner.values();
  }

  /** Its number, also of one that is gone; it is there from now on. */
  claim(owner: string): number | undefined {
    const known = this.#byOwner.get(owner);
    if (known === undefined) return undefined;
    if (this.#gone.delete(owner)) {
      this.#put({ owner, number: known.number });
      this.onChanged();
    }
    return known.number;
  }

  /** Who has a number, or had it. */
  ownerOf(number: number): string | undefined {
    return this.#owners.get(number);
  }

  /** @param number Nobody's. */
  give(owner: string, number: number): void {
    this.#put({ owner, number });
    this.onChanged();
  }

  /** Its number is kept for it for a while. */
  leave(owner: string): void {
    const known = this.#byOwner.get(owner);
    if (known === undefined || this.#gone.has(owner)) return;
    this.#put({ ...known, goneMs: this.now() });
    this.#gone.add(owner);
    this.#forget();
    this.onChanged();
  }

  /** Takes the number of who is gone longest, for another. */
  reclaim(isFit: (number: number) => boolean): number | undefined {
    for (const owner of this.#gone) {
      const { number } = this.#byOwner.get(owner)!;
      if (!isFit(number)) continue;
      this.#drop(owner);
      return number;
    }
    return undefined;
  }

  #put(one: ReservedNumber): void {
    this.#byOwner.set(one.owner, one);
    this.#owners.set(one.number, one.owner);
  }

  #forget(): void {
    const oldestMs = this.now() - GONE_MS;
    for (const owner of this.#gone) {
      const isOld = this.#byOwner.get(owner)!.goneMs! < oldestMs;
      if (!isOld && this.#gone.size <= GONE_MAX) return;
      this.#drop(owner);
    }
  }

  #drop(owner: string): void {
    this.#owners.delete(this.#byOwner.get(owner)!.number);
    this.#byOwner.delete(owner);
    this.#gone.delete(owner);
  }
}

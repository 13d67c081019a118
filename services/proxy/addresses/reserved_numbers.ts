/**
 * Which service has, or had, which number of a range of local addresses. A
 * service that goes and comes back is found at its old address, and no other
 * service is found there meanwhile.
 *
 * It is kept over a restart in one small file for each proxy: two services
 * whose names give the same number must not swap. A file that is damaged, or of
 * another range, does no harm: addresses are computed from names again. This
 * file does not know what a number means.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import { SavedFile } from "../../../platform/files/saved_file.ts";

/** How long the number of a service that is gone is kept for it. */
export const GONE_MS: number = 7 * 24 * 3_600_000;

/**
 * Limit on numbers of services that are gone; the one gone longest is forgotten
 * first.
 */
export const GONE_MAX = 10_000;

/** A service that has a number, or had it. */
export interface ReservedNumber {
  readonly owner: string;
  readonly number: number;
  /** Since when the owner is gone; absent: it is there. */
  readonly goneMs?: number;
}

export class ReservedNumbers {
  readonly #byOwner = new Map<string, ReservedNumber>();
  readonly #owners = new Map<number, string>();
  /** Services that are gone, the longest gone first. */
  readonly #gone = new Set<string>();
  /** Something is other than it was; set by the owner of the file. */
  onChanged: () => void = () => {};

  /**
   * @param kept Numbers of an earlier run: all their services count as gone
   *   until they come.
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

  /** All numbers, for storage. */
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

  /** A service that has a number, or had it. */
  ownerOf(number: number): string | undefined {
    return this.#owners.get(number);
  }

  /** @param number A number that no service has. */
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

  /** Takes the number of the service that is gone longest, for another. */
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

/** How soon a change is on disk. */
export const ADDRESS_FILE_SAVE_DELAY_MS = 100;

/** Longer files are not read: 20,000 services need a tenth of this. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Two names of 253 characters, one of 63, and the separators. */
const OWNER_CHARACTERS_MAX = 600;

/** What it needs from outside. */
export interface AddressFileOptions extends Tools {
  readonly path: string;
  /** What numbers are of, such as `ports 20000-29999`; another's are not used. */
  readonly range: string;
  /** How many there are. */
  readonly count: number;
  /** Another process of the same program keeps it. */
  readonly isOthers?: boolean;
}

export class AddressFile {
  readonly numbers: ReservedNumbers;
  readonly #file: SavedFile;

  /** Reads the file; an unusable one is logged. */
  constructor(options: AddressFileOptions) {
    const { path, range, count, log, timers } = options;
    this.#file = new SavedFile({
      path,
      format: "tunnel-proxy-addresses",
      owner: range,
      what: "the addresses of services",
      unusable: "addresses are made of names anew",
      unkept: "services whose names collide may swap theirs at the next start",
      bytesMax: FILE_BYTES_MAX,
      delayMs: ADDRESS_FILE_SAVE_DELAY_MS,
      items: () => itemsOf(this.numbers),
      log,
      timers,
    });
    const items = this.#file.readSync()?.items ?? [];
    this.numbers = new ReservedNumbers(
      items.flatMap((item) => reservedNumberOf(item, count)),
    );
    if (options.isOthers === true) return;
    this.numbers.onChanged = () => this.#file.changed();
  }

  /** Settles when everything is on disk, or cannot be. */
  close(): Promise<void> {
    return this.#file.close();
  }
}

function itemsOf(numbers: ReservedNumbers): Iterable<unknown> {
  return [...numbers.all].map(({ owner, number, goneMs }) =>
    goneMs === undefined ? [owner, number] : [owner, number, goneMs]
  );
}

/** @returns None when it is not sound. */
function reservedNumberOf(
  item: unknown,
  count: number,
): readonly ReservedNumber[] {
  if (!Array.isArray(item)) return [];
  const [owner, number, goneMs] = item as readonly unknown[];
  const isSound = typeof owner === "string" &&
    owner.length <= OWNER_CHARACTERS_MAX && Number.isInteger(number) &&
    (number as number) >= 0 && (number as number) < count;
  if (!isSound) return [];
  const gone = typeof goneMs === "number" && Number.isFinite(goneMs)
    ? { goneMs }
    : {};
  return [{ owner, number: number as number, ...gone }];
}

/**
 * Where services were found, on disk: two whose names make the same number must
 * not swap when the proxy is started again.
 *
 * One small file for each proxy. One that is damaged, or of another range, does no
 * harm: addresses are made of names anew.
 *
 * @module
 */

import { SavedFile } from "../../../platform/files/saved_file.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { type ReservedNumber, ReservedNumbers } from "./reserved_numbers.ts";
import { type LocalAddresses, numbersOf } from "./local_address.ts";

/** A change is on disk so soon. */
export const ADDRESS_FILE_SAVE_DELAY_MS = 100;

/** Longer ones are not read: 20,000 services need a tenth of it. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Two names of 253 and one of 63, and what is between. */
const OWNER_CHARACTERS_MAX = 600;

/** What it needs from outside. */
export interface AddressFileOptions {
  readonly path: string;
  /** What numbers are of, such as `ports 20000-29999`; another's are not used. */
  readonly range: string;
  /** How many there are. */
  readonly count: number;
  readonly log: Log;
  readonly timers: Timers;
  /** Another process of the same program keeps it. */
  readonly isOthers?: boolean;
}

export class AddressFile {
  readonly numbers: ReservedNumbers;
  readonly #file: SavedFile;

  /** Reads it; what is wrong with it is said to the log. */
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

/**
 * The file at `path`, for services at these addresses.
 *
 * @returns `undefined` when addresses are not given by number.
 */
export function openAddressFile(
  path: string,
  addresses: LocalAddresses,
  tools: Pick<AddressFileOptions, "log" | "timers" | "isOthers">,
): AddressFile | undefined {
  const range = numbersOf(addresses);
  if (range === undefined) return undefined;
  const { name, count } = range;
  return new AddressFile({ path, range: name, count, ...tools });
}

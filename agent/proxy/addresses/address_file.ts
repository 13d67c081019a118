/**
 * Where services were found, on disk: two whose names make the same number must
 * not swap when the proxy is started again.
 *
 * One small file for each proxy, replaced as a whole. One that is damaged, or of
 * another range, does no harm: addresses are made of names anew.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { replaceFile } from "../../../platform/files/atomic_file.ts";
import {
  isSystemError,
  systemProblem,
} from "../../../platform/files/file_error.ts";
import {
  checkSeen,
  PrivateFileError,
} from "../../../platform/files/private_files.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import { type KeptNumber, KeptNumbers } from "./kept_numbers.ts";
import { type LocalAddresses, numbersOf } from "./local_address.ts";

/** A change is on disk so soon. */
export const SAVE_DELAY_MS = 100;

/** Longer ones are not read: 20,000 services need a tenth of it. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Two names of 253 and one of 63, and what is between. */
const OWNER_CHARACTERS_MAX = 600;

const FORMAT = "tunnel-proxy-addresses";
const VERSION = 1;

/** What it needs from outside. */
export interface AddressFileOptions {
  readonly path: string;
  /** What numbers are of, such as `ports 20000-29999`; another's are not used. */
  readonly range: string;
  /** How many there are. */
  readonly count: number;
  readonly log: Log;
  readonly timers: Timers;
}

/** See the module description. */
export class AddressFile {
  readonly #options: AddressFileOptions;
  readonly numbers: KeptNumbers;
  #timer: Timer | undefined;
  #saving: Promise<void> = Promise.resolve();
  /** Said already. */
  #problem: string | undefined;

  /** Reads it; what is wrong with it is said to the log. */
  constructor(options: AddressFileOptions) {
    this.#options = options;
    this.numbers = new KeptNumbers(this.#read());
    this.numbers.onChanged = () => {
      this.#timer ??= options.timers.after(
        SAVE_DELAY_MS,
        () => unawaited("file", this.#save()),
      );
    };
  }

  /** Settles when everything is on disk, or cannot be. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) await this.#save();
    await this.#saving;
  }

  #save(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    return this.#saving = this.#saving.then(() => this.#write());
  }

  async #write(): Promise<void> {
    const { path, range, log } = this.#options;
    const addresses = [...this.numbers.all]
      .map(({ owner, number, goneMs }) =>
        goneMs === undefined ? [owner, number] : [owner, number, goneMs]
      );
    const document = { format: FORMAT, version: VERSION, range, addresses };
    try {
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")) || "/", {
        recursive: true,
        mode: 0o700,
      });
      await replaceFile(path, JSON.stringify(document) + "\n");
      this.#problem = undefined;
    } catch (error) {
      if (!isSystemError(error)) throw error;
      const problem = systemProblem(error);
      if (this.#problem === problem) return;
      this.#problem = problem;
      log.warn(
        `Cannot keep the addresses of services in ${path}: ${problem}; ` +
          "services whose names collide may swap theirs at the next start",
      );
    }
  }

  #read(): readonly KeptNumber[] {
    const { path, range, count, log } = this.#options;
    try {
      const seen = Deno.statSync(path);
      if (seen.size > FILE_BYTES_MAX) return [];
      // Who writes it has services change places.
      checkSeen(path, seen, "change");
      return numbersIn(Deno.readTextFileSync(path), range, count);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      const problem = error instanceof SyntaxError
        ? "it is damaged"
        : error instanceof PrivateFileError
        ? error.message
        : isSystemError(error)
        ? systemProblem(error)
        : undefined;
      if (problem === undefined) throw error;
      log.warn(
        `Cannot use the addresses of services in ${path}: ${problem}; ` +
          "addresses are made of names anew",
      );
      return [];
    }
  }
}

/** @throws {SyntaxError} It is none of ours. */
function numbersIn(
  text: string,
  range: string,
  count: number,
): readonly KeptNumber[] {
  const document: unknown = JSON.parse(text);
  if (!isOurs(document)) throw new SyntaxError(`not ${FORMAT}`);
  if (document.range !== range) return [];
  return document.addresses.flatMap((item) => {
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
  });
}

function isOurs(
  document: unknown,
): document is { readonly range: unknown; readonly addresses: unknown[] } {
  if (typeof document !== "object" || document === null) return false;
  const { format, version, addresses } = document as Record<string, unknown>;
  return format === FORMAT && version === VERSION && Array.isArray(addresses);
}

/**
 * The file at `path`, for services at these addresses.
 *
 * @returns `undefined` when addresses are not given by number.
 */
export function openAddressFile(
  path: string,
  addresses: LocalAddresses,
  tools: Pick<AddressFileOptions, "log" | "timers">,
): AddressFile | undefined {
  const range = numbersOf(addresses);
  if (range === undefined) return undefined;
  const { name, count } = range;
  return new AddressFile({ path, range: name, count, ...tools });
}

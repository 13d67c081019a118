/**
 * Seeded randomness for property tests and fuzzers.
 *
 * Same seed, same run. Every random test prints its seed when it fails; set
 * `SEED` to replay it.
 *
 * @module
 */

/** A small, fast, seedable generator (mulberry32). Not for secrets. */
export class Prng {
  #state: number;

  /** @param seed Any 32-bit number. */
  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uses `SEED` when it is set, a fresh seed otherwise. */
  static fromEnvironment(): Prng {
    const given = Deno.env.get("SEED");
    return new Prng(
      given === undefined ? (Math.random() * 2 ** 32) >>> 0 : +given,
    );
  }

  /** A whole number in `[0, limit)`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  }

  /** `length` random bytes. */
  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  /** One of `items`, which must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** Runs `check` `runs` times and names the seed of the first failure. */
export async function forAll(
  runs: number,
  check: (prng: Prng) => void | Promise<void>,
): Promise<void> {
  const first = Prng.fromEnvironment().seed;
  for (let run = 0; run < runs; run++) {
    const prng = new Prng(first + run);
    try {
      await check(prng);
    } catch (cause) {
      throw new Error(`Failed; replay with SEED=${prng.seed}`, { cause });
    }
  }
}

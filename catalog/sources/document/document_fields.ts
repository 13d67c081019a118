/**
 * A document that people wrote, read field by field. What is unknown, missing or
 * of another type is refused by its place, of which `line_finder.ts` makes a
 * line.
 *
 * @module
 */

/** Where something stands: `["services", 2, "ports"]`. */
export type Place = readonly (string | number)[];

/** What is wrong in one place. */
export class FieldError extends Error {
  override readonly name = "FieldError";

  constructor(readonly place: Place, problem: string) {
    super(`${placeText(place)}: ${problem}`);
  }
}

/** One map of a document, and where it stands. */
export class Fields {
  readonly #map: Readonly<Record<string, unknown>>;

  /**
   * @param known All fields there are.
   * @throws {FieldError} When `value` is no map, or has other fields.
   */
  constructor(
    value: unknown,
    readonly place: Place,
    known: readonly string[],
  ) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new FieldError(
        place,
        `saw ${kindOf(value)}, wanted a map of ${known.join(", ")}`,
      );
    }
    this.#map = value as Readonly<Record<string, unknown>>;
    for (const key of Object.keys(this.#map)) {
      if (known.includes(key)) continue;
      throw new FieldError(
        [...place, key],
        `there is no such field; wanted one of ${known.join(", ")}`,
      );
    }
  }

  /** Whether `key` has a value. */
  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  /** As it is; `undefined` when there is nothing (`key:` alone, too). */
  value(key: string): unknown {
    if (!Object.hasOwn(this.#map, key)) return undefined;
    return this.#map[key] ?? undefined;
  }

  refuse(key: string, problem: string): never {
    throw new FieldError([...this.place, key], problem);
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "string") return value;
    this.refuse(key, `saw ${kindOf(value)}, wanted a text; quote it if needed`);
  }

  flag(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "boolean") return value;
    this.refuse(key, `saw ${kindOf(value)}, wanted true or false`);
  }

  /** A whole number from `least` to `most`. */
  number(key: string, least: number, most: number): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const isGood = typeof value === "number" && Number.isInteger(value) &&
      value >= least && value <= most;
    if (isGood) return value;
    const seen = typeof value === "number" ? `${value}` : kindOf(value);
    this.refuse(key, `saw ${seen}, wanted ${least} to ${most}`);
  }

  /** Milliseconds of `500ms`, `10s`, `1m30s`, `3h`. */
  duration(key: string, leastMs = 1): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const ms = typeof value === "string" ? durationMs(value) : undefined;
    if (ms !== undefined && ms >= leastMs) return ms;
    const seen = typeof value === "string" ? `"${value}"` : kindOf(value);
    this.refuse(key, `saw ${seen}, wanted a time such as 500ms, 10s or 1m30s`);
  }

  /** One of a few words. */
  word<Word extends string>(
    key: string,
    words: readonly Word[],
  ): Word | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const seen = typeof value === "string" ? `"${value}"` : kindOf(value);
    this.refuse(key, `saw ${seen}, wanted ${words.join(", ")}`);
  }

  /** The items of a list and their places; none when it is absent. */
  list(key: string): readonly (readonly [unknown, Place])[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.refuse(key, `saw ${kindOf(value)}, wanted a list`);
    }
    return value.map((item, i) => [item, [...this.place, key, i]] as const);
  }

  /** The map under `key`; `undefined` when it is absent. */
  map(key: string, known: readonly string[]): Fields | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    return new Fields(value, [...this.place, key], known);
  }
}

/** What a value is, for a sentence. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

const UNITS_MS: ReadonlyMap<string, number> = new Map(
  Object.entries({ h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }),
);

function durationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|s))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(h|ms|m|s)/g)) {
    total += Number(amount) * UNITS_MS.get(unit!)!;
  }
  return total;
}

/** `services[2].ports`. */
function placeText(place: Place): string {
  if (place.length === 0) return "the document";
  return place.map((part) =>
    typeof part === "number" ? `[${part}]` : `.${part}`
  )
    .join("").replace(/^\./, "");
}

/**
 * A document that people wrote, read field by field: what is unknown, missing or
 * of another type is refused by its place, such as `frontends[2].allow[0]`.
 *
 * @module
 */

/** A place in a document, and what is wrong there. */
export class FieldError extends Error {
  override readonly name = "FieldError";

  constructor(readonly place: string, problem: string) {
    super(`${place || "the document"}: ${problem}`);
  }
}

/** One map of a document, and where it stands. */
export class Fields {
  readonly #map: Readonly<Record<string, unknown>>;
  readonly #place: string;

  /**
   * @param known All fields there are.
   * @throws {FieldError} When `value` is no map, or has other fields.
   */
  constructor(value: unknown, place: string, known: readonly string[]) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      const fields = known.join(", ");
      throw new FieldError(
        place,
        `saw ${kindOf(value)}, wanted a map of ${fields}`,
      );
    }
    this.#map = value as Readonly<Record<string, unknown>>;
    this.#place = place;
    for (const key of Object.keys(this.#map)) {
      if (known.includes(key)) continue;
      throw new FieldError(
        this.placeOf(key),
        `there is no such field; wanted one of ${known.join(", ")}`,
      );
    }
  }

  /** Whether `key` is there at all, with a value or without. */
  has(key: string): boolean {
    return Object.hasOwn(this.#map, key);
  }

  /** Where `key` stands, or would stand. */
  placeOf(key: string): string {
    return this.#place === "" ? key : `${this.#place}.${key}`;
  }

  /** A text that is not empty; `undefined` when it is absent. */
  text(key: string): string | undefined {
    if (!Object.hasOwn(this.#map, key)) return undefined;
    return textAt(this.#map[key], this.placeOf(key));
  }

  /** A list and the place of each item; `undefined` when it is absent. */
  list(key: string): readonly (readonly [unknown, string])[] | undefined {
    if (!Object.hasOwn(this.#map, key)) return undefined;
    const place = this.placeOf(key);
    const value = this.#map[key];
    if (!Array.isArray(value)) {
      throw new FieldError(place, `saw ${kindOf(value)}, wanted a list`);
    }
    return value.map((item, index) => [item, `${place}[${index}]`] as const);
  }

  /** A list of texts; `undefined` when it is absent. */
  texts(key: string): readonly (readonly [string, string])[] | undefined {
    return this.list(key)?.map(([item, place]) =>
      [textAt(item, place), place] as const
    );
  }
}

function textAt(value: unknown, place: string): string {
  if (typeof value === "string" && value !== "") return value;
  const seen = value === "" ? "an empty text" : kindOf(value);
  // `*` begins an alias in YAML, so people meet this with the best of rules.
  throw new FieldError(place, `saw ${seen}, wanted a text; quote it if needed`);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

/**
 * A document of which only some fields matter, read field by field (`shape.ts`
 * reads whole ones). What is of another type is refused by its place, of which
 * `yaml.ts` makes a line.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** The path of a place: `["services", 2, "ports"]`. */
export type DocumentPath = readonly (string | number)[];

/** An error in one place. */
export class FieldError extends Error {
  override readonly name = "FieldError";
  readonly tunnelCode: Code = "TUN124";

  constructor(readonly place: DocumentPath, readonly problem: string) {
    super(`${pathText(place) || "the document"}: ${problem}`);
  }
}

/** One map of a document, and where it stands. */
export class DocumentMap {
  readonly #map: Readonly<Record<string, unknown>>;

  /** @throws {FieldError} When `value` is no map. */
  constructor(value: unknown, readonly place: DocumentPath) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new FieldError(place, `saw ${kindOfValue(value)}, wanted a map`);
    }
    this.#map = value as Readonly<Record<string, unknown>>;
  }

  /** Whether `key` has a value. */
  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  /** The raw value; `undefined` when it is empty (`key:` alone, too). */
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
    this.refuse(
      key,
      `saw ${kindOfValue(value)}, wanted a text; quote it if needed`,
    );
  }

  flag(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "boolean") return value;
    this.refuse(key, `saw ${kindOfValue(value)}, wanted true or false`);
  }

  /** The items of a list and their places; none when it is absent. */
  list(key: string): readonly (readonly [unknown, DocumentPath])[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.refuse(key, `saw ${kindOfValue(value)}, wanted a list`);
    }
    return value.map((item, i) => [item, [...this.place, key, i]] as const);
  }

  /** The texts of a list with their places; `undefined` when it is absent. */
  texts(key: string): readonly (readonly [string, DocumentPath])[] | undefined {
    if (!this.has(key)) return undefined;
    return this.list(key).map(([item, place]) => {
      if (typeof item === "string") return [item, place] as const;
      // `*` begins an alias in YAML, so people meet this with the best of rules.
      throw new FieldError(
        place,
        `saw ${kindOfValue(item)}, wanted a text; quote it if needed`,
      );
    });
  }

  /** The map under `key`; `undefined` when it is absent. */
  map(key: string): DocumentMap | undefined {
    const value = this.value(key);
    return value === undefined
      ? undefined
      : new DocumentMap(value, [...this.place, key]);
  }
}

/** The kind of a value, for a sentence. */
export function kindOfValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

/** `services[2].ports`; empty for the whole document. */
export function pathText(place: DocumentPath): string {
  return place.map((part) =>
    typeof part === "number" ? `[${part}]` : `.${clipped(part)}`
  )
    .join("").replace(/^\./, "");
}

/**
 * A document that people wrote, read field by field. What is unknown, missing or
 * of another type is refused by its place, of which `line_finder.ts` makes a
 * line.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { parseGoDuration } from "./go_duration.ts";

/** Where something stands: `["services", 2, "ports"]`. */
export type DocumentPath = readonly (string | number)[];

/** What is wrong in one place. */
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

  /**
   * @param known All fields there are; absent: others do not matter.
   * @throws {FieldError} When `value` is no map, or has other fields.
   */
  constructor(
    value: unknown,
    readonly place: DocumentPath,
    known?: readonly string[],
  ) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      const of = known === undefined ? "" : ` of ${known.join(", ")}`;
      throw new FieldError(
        place,
        `saw ${kindOfValue(value)}, wanted a map${of}`,
      );
    }
    this.#map = value as Readonly<Record<string, unknown>>;
    for (const key of known === undefined ? [] : Object.keys(this.#map)) {
      if (known!.includes(key)) continue;
      throw new FieldError(
        [...place, key],
        `there is no such field; wanted one of ${known!.join(", ")}`,
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

  /**
   * For documents in which an empty value is a mistake: a value that was taken
   * out of a field, or of a list in it, must not open what it closed.
   */
  refuseEmpty(): this {
    for (const [key, value] of Object.entries(this.#map)) {
      assertSaysSomething(value, [...this.place, key]);
      if (!Array.isArray(value)) continue;
      for (const [item, place] of this.list(key)) {
        assertSaysSomething(item, place);
      }
    }
    return this;
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

  /** A whole number from `least` to `most`. */
  number(key: string, least: number, most: number): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const isGood = typeof value === "number" && Number.isInteger(value) &&
      value >= least && value <= most;
    if (isGood) return value;
    const seen = typeof value === "number" ? `${value}` : kindOfValue(value);
    this.refuse(key, `saw ${seen}, wanted ${least} to ${most}`);
  }

  /** Milliseconds of `500ms`, `10s`, `1m30s`, `3h`. */
  duration(key: string, leastMs = 1): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const ms = typeof value === "string" ? parseGoDuration(value) : undefined;
    if (ms !== undefined && ms >= leastMs) return ms;
    const seen = shown(value);
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
    const seen = shown(value);
    this.refuse(key, `saw ${seen}, wanted ${words.join(", ")}`);
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

  /** The texts of a list and their places; `undefined` when it is absent. */
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
  map(key: string, known?: readonly string[]): DocumentMap | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    return new DocumentMap(value, [...this.place, key], known);
  }
}

function assertSaysSomething(value: unknown, place: DocumentPath): void {
  if (value !== null && value !== undefined && value !== "") return;
  const seen = value === "" ? "an empty text" : "nothing";
  throw new FieldError(
    place,
    `saw ${seen}, wanted a value; quote it if needed, or take it out`,
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? `"${clipped(value)}"` : kindOfValue(value);
}

/** What a value is, for a sentence. */
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

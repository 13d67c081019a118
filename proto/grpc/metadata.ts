/**
 * gRPC custom metadata: an ordered multi-map with lower-case ASCII names.
 *
 * @module
 */

/** Text, or bytes when the name ends in `-bin`. */
export type MetadataValue = string | Uint8Array;

export class Metadata {
  readonly #entries: (readonly [string, MetadataValue])[] = [];

  /** @param initial Names and values, set one by one. */
  constructor(initial: Readonly<Record<string, MetadataValue>> = {}) {
    for (const [name, value] of Object.entries(initial)) this.add(name, value);
  }

  /**
   * Makes this final: it may be shared, and what is derived from it may be
   * kept.
   *
   * @returns This.
   */
  freeze(): this {
    Object.freeze(this.#entries);
    return this;
  }

  get isFrozen(): boolean {
    return Object.isFrozen(this.#entries);
  }

  /**
   * Adds one value; earlier ones of the same name stay.
   *
   * @throws {TypeError} When this is final.
   */
  add(name: string, value: MetadataValue): void {
    this.#entries.push([name.toLowerCase(), value]);
  }

  /** All values of `name`, in order. */
  all(name: string): readonly MetadataValue[] {
    const wanted = name.toLowerCase();
    return this.#entries.filter(([n]) => n === wanted).map(([, v]) => v);
  }

  /** All text values of `name`, in order. */
  texts(name: string): readonly string[] {
    return this.all(name).filter((value) => typeof value === "string");
  }

  /**
   * The first text value of `name`. A loop: every call uses this a few times.
   */
  text(name: string): string | undefined {
    const wanted = name.toLowerCase();
    for (const [entry, value] of this.#entries) {
      if (entry === wanted && typeof value === "string") return value;
    }
    return undefined;
  }

  [Symbol.iterator](): Iterator<readonly [string, MetadataValue]> {
    return this.#entries[Symbol.iterator]();
  }
}

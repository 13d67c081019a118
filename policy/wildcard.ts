/**
 * Patterns in which `*` matches any run of characters, even an empty one.
 *
 * Regular expressions are not used: the matched text comes from peers, and a
 * pattern such as `*a*a*a*` must not take longer than going through the text
 * once.
 *
 * @module
 */

/** A pattern in which `*` matches any text. */
export class Wildcard {
  readonly #parts: readonly string[];

  /** @param pattern Every character but `*` matches itself. */
  constructor(readonly pattern: string) {
    this.#parts = pattern.split("*");
  }

  /** Whether the pattern is one single text. */
  get isExact(): boolean {
    return this.#parts.length === 1;
  }

  /** What every text that fits begins with. */
  get head(): string {
    return this.#parts[0]!;
  }

  /** Whether all of `text` fits the pattern. */
  matches(text: string): boolean {
    const parts = this.#parts;
    const first = parts[0]!;
    if (this.isExact) return text === first;
    const last = parts.at(-1)!;
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    // The leftmost place for each part leaves most room for later parts.
    const end = text.length - last.length;
    let at = first.length;
    for (let index = 1; index < parts.length - 1; index++) {
      const part = parts[index]!;
      const found = text.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  }
}

/**
 * Puts lines of JSON together as bytes, in memory that is used again.
 *
 * A text that is made of a dozen others, and encoded then, is garbage and system
 * calls of the platform; with two lines for each connection that is felt.
 *
 * @module
 */

const encoder = new TextEncoder();

const [QUOTE, BACKSLASH, ZERO, NEWLINE] = [0x22, 0x5c, 0x30, 0x0a];

/** Most numbers are below it, and reckoned without fractions. */
const SMALL_BELOW = 1e9;

/** Builds lines of JSON in one buffer. */
export class JsonLine {
  /** Nearly all lines are shorter; it grows with the first that is not. */
  #bytes = new Uint8Array(1_024);
  #used = 0;

  /** Adds text that is JSON already: `ascii` as it is. */
  raw(ascii: string): this {
    const bytes = this.#withRoom(ascii.length);
    let at = this.#used;
    for (let index = 0; index < ascii.length; index++) {
      bytes[at++] = ascii.charCodeAt(index);
    }
    this.#used = at;
    return this;
  }

  /** Adds any text as a string of JSON. */
  text(value: string): this {
    const bytes = this.#withRoom(value.length + 2);
    let at = this.#used;
    bytes[at++] = QUOTE;
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index);
      const isPlain = code >= 0x20 && code < 0x7f && code !== QUOTE &&
        code !== BACKSLASH;
      if (!isPlain) return this.#escaped(value);
      bytes[at++] = code;
    }
    bytes[at++] = QUOTE;
    this.#used = at;
    return this;
  }

  /** @param value An integer that is not negative. */
  number(value: number): this {
    if (value >= SMALL_BELOW) return this.raw(String(value));
    let digits = 1;
    for (let rest = value | 0; rest >= 10; digits++) rest = (rest / 10) | 0;
    return this.digits(value, digits);
  }

  /** @param value An integer of at most this many digits, below a billion. */
  digits(value: number, count: number): this {
    // What looks like a fraction to the compiler is divided ten times slower.
    value |= 0;
    const bytes = this.#withRoom(count);
    this.#used += count;
    for (let at = this.#used - 1; count > 0; count--, at--) {
      bytes[at] = ZERO + value % 10;
      value = (value / 10) | 0;
    }
    return this;
  }

  /** Adds an object whose members are text or numbers. */
  members(members: Readonly<Record<string, string | number>>): this {
    let before = "{";
    for (const name in members) {
      // deno-lint-ignore tunnel/own-keys -- it is one of its own.
      const value = members[name]!;
      this.raw(before).text(name).raw(":");
      if (typeof value === "number") this.number(value);
      else this.text(value);
      before = ",";
    }
    return this.raw(before === "{" ? "{}" : "}");
  }

  /**
   * Ends the line; the next one begins.
   *
   * @returns The line with its end, until something is added to the next one.
   */
  finish(): Uint8Array {
    this.#withRoom(1)[this.#used++] = NEWLINE;
    const line = this.#bytes.subarray(0, this.#used);
    this.#used = 0;
    return line;
  }

  #escaped(value: string): this {
    const json = JSON.stringify(value);
    // A character has three bytes at most in UTF-8.
    const free = this.#withRoom(json.length * 3).subarray(this.#used);
    this.#used += encoder.encodeInto(json, free).written;
    return this;
  }

  #withRoom(bytes: number): Uint8Array<ArrayBuffer> {
    const needed = this.#used + bytes;
    if (needed <= this.#bytes.length) return this.#bytes;
    const larger = new Uint8Array(needed * 2);
    larger.set(this.#bytes.subarray(0, this.#used));
    return this.#bytes = larger;
  }
}

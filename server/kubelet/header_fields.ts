/**
 * The header lines of one HTTP/1.1 message, read strictly and written anew.
 *
 * What two parsers read differently is how requests are smuggled past the first
 * one, so whatever is ambiguous is refused here and the rest leaves in our own
 * spelling (RFC 9112 §5, §11.2).
 *
 * @module
 */

import { MessageError, quote } from "./message_error.ts";

/** Most header lines of a message; Go's own clients send under 20. */
export const HEADER_LINES_MAX = 200;

/** RFC 9110 §5.6.2, without blanks in front of the colon (RFC 9112 §5.1). */
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/;

/** What concerns one connection and never the next one (RFC 9110 §7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "upgrade",
]);

/**
 * What `Connection` may not name: taking these away changes what a message
 * means or who it is from.
 */
const PROTECTED =
  /^(?:host|authorization|content-length|transfer-encoding|cookie|x-.*)$/;

/** One header line, taken apart. */
interface Field {
  /** Lower case, for comparing. */
  readonly key: string;
  /** As it was spelled. */
  readonly name: string;
  /** Without the blanks around it. */
  readonly value: string;
}

/** See the module description. */
export class HeaderFields {
  readonly #fields: readonly Field[];

  private constructor(fields: readonly Field[]) {
    this.#fields = fields;
  }

  /**
   * Takes header lines apart.
   *
   * @param status Of the error.
   * @throws {MessageError}
   */
  static parse(lines: readonly string[], status: number): HeaderFields {
    if (lines.length > HEADER_LINES_MAX) {
      throw new MessageError(
        status === 400 ? 431 : status,
        `Cannot read ${lines.length} header lines: at most ` +
          `${HEADER_LINES_MAX} wanted`,
      );
    }
    return new HeaderFields(lines.map((line) => parseLine(line, status)));
  }

  /** All values of `key` (lower case), in order. */
  all(key: string): readonly string[] {
    return this.#fields
      .filter((field) => field.key === key)
      .map(({ value }) => value);
  }

  /**
   * The value of a header that may be there once at most.
   *
   * @throws {MessageError} When it is there twice.
   */
  one(key: string, status: number): string | undefined {
    const values = this.all(key);
    if (values.length <= 1) return values[0];
    throw new MessageError(
      status,
      `Cannot tell which header "${key}" counts: there are ${values.length}`,
    );
  }

  /** The items of a comma-separated list, lower case. */
  list(key: string): readonly string[] {
    return this.all(key)
      .flatMap((value) => value.toLowerCase().split(","))
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }

  /**
   * The lines that concern the next hop as well, in our spelling.
   *
   * @param isDropped Others to leave out, by their key.
   * @throws {MessageError} When `Connection` names what must not be lost.
   */
  endToEnd(
    isDropped: (key: string) => boolean,
    status: number,
  ): readonly string[] {
    const named = new Set(this.list("connection"));
    for (const key of named) {
      if (!PROTECTED.test(key)) continue;
      throw new MessageError(
        status,
        `Cannot leave out the header ${quote(key)}, which Connection names: ` +
          "it belongs to the message",
      );
    }
    return this.#fields
      .filter(({ key }) =>
        !HOP_BY_HOP.has(key) && !named.has(key) && !isDropped(key)
      )
      .map(({ name, value }) => `${name}: ${value}`);
  }
}

function parseLine(line: string, status: number): Field {
  const match = HEADER_LINE.exec(line);
  if (match === null) {
    throw new MessageError(
      status,
      `Cannot read the header line ${quote(line)}, wanted "name: value"`,
    );
  }
  const name = match[1]!;
  const value = match[2]!.replace(/^[ \t]+|[ \t]+$/g, "");
  return { key: name.toLowerCase(), name, value };
}

/** A message's head as bytes; what was read byte by byte leaves so. */
export function headBytes(lines: readonly string[]): Uint8Array {
  const text = `${lines.join("\r\n")}\r\n\r\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/**
 * The header fields of one HTTP/1.1 message, read strictly and written again.
 *
 * Requests are smuggled past a parser with fields that the next parser reads
 * differently. So ambiguous fields are refused here, and the others leave in
 * our own spelling (RFC 9112 §5, §11.2).
 *
 * @module
 */

import { MessageError, quote } from "./refusal.ts";

/** Most field lines of a message; Go's own clients send under 20. */
export const FIELD_LINES_MAX = 200;

/**
 * RFC 9110 §5.6.2, without blanks in front of the colon (RFC 9112 §5.1), not
 * folded (§5.2), and without control characters, at which others end a value.
 */
export const FIELD_LINE: RegExp =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/;

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
 * means or its sender.
 */
const PROTECTED =
  /^(?:host|authorization|content-length|transfer-encoding|cookie|x-.*)$/;

/**
 * The status of a message that is the fault of the client, or of the server.
 */
export type FaultStatus = 400 | 502;

/** Parsed at the first use: most are never used. */
export class Fields {
  /**
   * @param lines Bytes as code points.
   * @param faultStatus Of every error.
   * @throws {MessageError} When a line is no field.
   */
  constructor(
    readonly lines: readonly string[],
    readonly faultStatus: FaultStatus,
  ) {
    if (lines.length > FIELD_LINES_MAX) {
      throw new MessageError(
        faultStatus === 400 ? 431 : faultStatus,
        `Cannot read ${lines.length} header lines: at most ` +
          `${FIELD_LINES_MAX} wanted`,
      );
    }
    for (const line of lines) {
      if (FIELD_LINE.test(line)) continue;
      throw new MessageError(
        faultStatus,
        `Cannot read the header line ${quote(line)}, wanted "name: value"`,
      );
    }
  }

  /** All values of `key` (lower case), in order, without blanks around them. */
  all(key: string): readonly string[] {
    const values: string[] = [];
    for (const line of this.lines) {
      if (line.charCodeAt(key.length) !== COLON) continue;
      if (line.slice(0, key.length).toLowerCase() !== key) continue;
      values.push(trimmed(line.slice(key.length + 1)));
    }
    return values;
  }

  /**
   * The value of a field that may be there once at most.
   *
   * @throws {MessageError} When it is there twice.
   */
  one(key: string): string | undefined {
    const values = this.all(key);
    if (values.length <= 1) return values[0];
    throw new MessageError(
      this.faultStatus,
      `Cannot tell which header "${key}" counts: there are ${values.length}`,
    );
  }

  /** The items of a comma-separated list, lower case. */
  list(key: string): readonly string[] {
    return this.all(key)
      .flatMap((value) => value.toLowerCase().split(","))
      .map(trimmed)
      .filter((item) => item !== "");
  }

  /**
   * The lines that concern the next hop as well, in our spelling.
   *
   * @param isDropped Others to leave out, by their key.
   * @throws {MessageError} When `Connection` names what must not be lost.
   */
  endToEnd(isDropped: (key: string) => boolean): readonly string[] {
    const named = new Set(this.list("connection"));
    for (const key of named) {
      if (!PROTECTED.test(key)) continue;
      throw new MessageError(
        this.faultStatus,
        `Cannot leave out the header ${quote(key)}, which Connection names: ` +
          "it belongs to the message",
      );
    }
    const kept: string[] = [];
    for (const line of this.lines) {
      const colon = line.indexOf(":");
      const name = line.slice(0, colon);
      const key = name.toLowerCase();
      if (HOP_BY_HOP.has(key) || named.has(key) || isDropped(key)) continue;
      kept.push(`${name}: ${trimmed(line.slice(colon + 1))}`);
    }
    return kept;
  }
}

const COLON = 0x3a;

/**
 * `text` without blanks around it. No pattern: one that ends in blanks is tried
 * again at each of them, and the peer chooses how many there are. Not `trim`:
 * other characters are blanks to that, and to no other parser.
 */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

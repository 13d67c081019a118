/**
 * One line of a header list. Pure data.
 *
 * @module
 */

/**
 * A header field as HPACK carries it (RFC 7541 §1.3).
 *
 * Both strings hold bytes as code points 0–255 ("binary strings"): HTTP/2
 * fields are bytes, and most of them are ASCII, for which this is free.
 */
export interface HeaderField {
  /** Lower case on the wire (RFC 9113 §8.2.1); pseudo fields start with `:`. */
  readonly name: string;
  readonly value: string;
  /** Encoded as never-indexed (RFC 7541 §6.2.3): secrets such as tokens. */
  readonly neverIndex?: boolean;
}

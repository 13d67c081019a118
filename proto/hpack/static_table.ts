/**
 * The static table (RFC 7541 Appendix A).
 *
 * @module
 */

import type { HeaderField } from "./header_field.ts";

// deno-fmt-ignore: one row per entry, as in the RFC.
const ROWS: readonly (readonly [name: string, value: string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

/** Entries 1–61 at their own index; index 0 is not used (§2.3.3). */
export const STATIC_TABLE: readonly HeaderField[] = [
  { name: "", value: "" },
  ...ROWS.map(([name, value]) => Object.freeze({ name, value })),
];

/** The first dynamic index (§2.3.3). */
export const DYNAMIC_INDEX_FIRST = STATIC_TABLE.length;

/** The positions of one name in the static table. */
export interface StaticName {
  /** The lowest index with this name. */
  readonly index: number;
  /** Value → index, for the entries that have a value worth finding. */
  readonly values: ReadonlyMap<string, number>;
}

/** The encoder's way in. */
export const STATIC_NAMES: ReadonlyMap<string, StaticName> = byName();

function byName(): Map<string, StaticName> {
  const names = new Map<
    string,
    { index: number; values: Map<string, number> }
  >();
  for (const [offset, [name, value]] of ROWS.entries()) {
    const index = offset + 1;
    const known = names.get(name) ?? { index, values: new Map() };
    known.values.set(value, index);
    names.set(name, known);
  }
  return names;
}

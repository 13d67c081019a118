/**
 * Values as Go's `flag` and `strconv` packages write them, because that is how
 * the manifests of Konnectivity users are written.
 *
 * Every parser answers `undefined` for text that is not such a value; the
 * caller knows which flag it was for and words the refusal.
 *
 * @module
 */

/** Reads what `strconv.ParseBool` reads. */
export function parseGoBool(text: string): boolean | undefined {
  if (/^(?:1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(?:0|f|F|false|FALSE|False)$/.test(text)) return false;
  return undefined;
}

/** Reads a decimal whole number, optionally signed. */
export function parseWholeNumber(text: string): number | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

const BYTES_PER_UNIT: ReadonlyMap<string, number> = new Map(
  Object.entries({
    "": 1,
    KiB: 1024,
    MiB: 1024 ** 2,
    GiB: 1024 ** 3,
  }),
);

/** Reads a count of bytes: `4194304` or `4MiB`. Ours; Go has no such type. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+)(|KiB|MiB|GiB)$/.exec(text);
  if (match === null) return undefined;
  const value = Number(match[1]) * BYTES_PER_UNIT.get(match[2]!)!;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The shortest exact spelling that {@linkcode parseBytes} reads. */
export function formatBytes(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"]) {
    const size = BYTES_PER_UNIT.get(unit)!;
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}

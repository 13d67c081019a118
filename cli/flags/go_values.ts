/**
 * Values as Go's `flag`, `time` and `strconv` packages write them, because that
 * is how the manifests of Konnectivity users are written.
 *
 * Every parser answers `undefined` for text that is not such a value; the
 * caller knows which flag it was for and words the refusal.
 *
 * @module
 */

const MS_PER_UNIT: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ns: 1e-6,
    us: 1e-3,
    "µs": 1e-3,
    "μs": 1e-3,
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
  }),
);

const DURATION = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const DURATION_PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

/**
 * Reads `time.ParseDuration` syntax: `1h0m0s`, `1.5s`, `100ms`, `0`.
 *
 * @returns Milliseconds, possibly negative or fractional.
 */
export function parseGoDuration(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  if (!DURATION.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(DURATION_PART)) {
    totalMs += Number(amount) * MS_PER_UNIT.get(unit!)!;
  }
  return text.startsWith("-") ? -totalMs : totalMs;
}

/** Writes whole milliseconds as Go's `Duration.String`: `1h0m0s`, `100ms`. */
export function formatGoDuration(durationMs: number): string {
  if (durationMs === 0) return "0s";
  if (durationMs < 1000) return `${durationMs}ms`;
  const seconds = durationMs / 1000;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = `${Number((seconds % 60).toFixed(3))}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}

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

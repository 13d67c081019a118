/**
 * Durations as Go's `time` package writes them, in flags and in documents alike,
 * because that is how the manifests of Kubernetes and Konnectivity users have
 * them.
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
 * @returns Milliseconds, possibly negative or fractional; `undefined` for text
 *   that is not such a value.
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

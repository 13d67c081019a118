/**
 * What the demo shows: a bar, a table and a picture. Text only.
 *
 * @module
 */

/** What was measured on one path. */
export interface PathFigures {
  /** Such as `gRPC → alpha`. */
  readonly path: string;
  readonly requests: number;
  /** Dial, request and whole answer, each. */
  readonly requestsMs: readonly number[];
  readonly bulkBytes: number;
  readonly bulkMs: number;
}

const MIB = 1024 * 1024;
const BAR_COLUMNS = 32;

/** One line without its end, shorter than 80 columns. */
export function progressBar(
  doneBytes: number,
  allBytes: number,
  tookMs: number,
): string {
  const filled = Math.floor(doneBytes / allBytes * BAR_COLUMNS);
  const bar = "█".repeat(filled) + "░".repeat(BAR_COLUMNS - filled);
  const done = String(Math.floor(doneBytes / MIB)).padStart(4);
  return `  ${bar} ${done} of ${allBytes / MIB} MiB  ` +
    `${speed(doneBytes, tookMs).padStart(6)} MB/s`;
}

/** Lines, one per path, under a heading. */
export function figuresTable(rows: readonly PathFigures[]): string {
  const cells = rows.map((row) => [
    row.path,
    String(row.requests),
    `${row.bulkBytes / MIB} MiB`,
    speed(row.bulkBytes, row.bulkMs),
    `${median(row.requestsMs).toFixed(1)} ms`,
  ]);
  const heading = ["path", "requests", "bytes", "MB/s", "p50"];
  const all = [heading, ...cells];
  const widths = heading.map((_, column) =>
    Math.max(...all.map((row) => row[column]!.length))
  );
  return all.map((row) =>
    "  " +
    row.map((cell, column) =>
      column === 0
        ? cell.padEnd(widths[column]!)
        : cell.padStart(widths[column]!)
    ).join("   ")
  ).join("\n");
}

/** The way of a byte through the demo. */
export const PICTURE = `
  this process ── gRPC or CONNECT, unix socket ──► tunnel server
                                                     ║
                                                     ║ mTLS, HTTP/2: a stream
                                                     ║ for each connection
                                                     ║
                                    target ◄─ TCP ─ tunnel agent (alpha, beta)
`;

/** The middle one; of two, the upper. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function speed(bytes: number, tookMs: number): string {
  return tookMs > 0 ? (bytes / 1e3 / tookMs).toFixed(0) : "0";
}

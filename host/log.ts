/**
 * The log: one line per event on stderr, for people or for machines.
 *
 * | `--v` | shown | for |
 * |---|---|---|
 * | 0 (default) | error, warning, info | what an operator must know |
 * | 1 to 3 | + debug | links and connections coming and going |
 * | 4 and more | + trace | every packet |
 *
 * @module
 */

import {
  configureSync,
  getLogger,
  type Logger,
  type LogLevel,
  type LogRecord,
} from "@logtape/logtape";

export type { Logger };

/** How the log is written. */
export interface LogOptions {
  readonly format: "text" | "json";
  /** The number of `--v`; see the table above. */
  readonly verbosity: number;
  /** Where lines go. Default: stderr. */
  readonly write?: (line: string) => void;
}

/** Root category of all loggers. */
const ROOT = "tunnel";

/** Sets up the log of this process. May be called again, to change it. */
export function configureLog(options: LogOptions): void {
  const format = options.format === "json" ? jsonLine : textLine;
  const write = options.write ?? writeStderr;
  configureSync({
    reset: true,
    sinks: { lines: (record: LogRecord) => write(format(record)) },
    loggers: [
      {
        category: [ROOT],
        sinks: ["lines"],
        lowestLevel: levelOf(options.verbosity),
      },
      // The library's own notice about itself is nobody's business here.
      { category: ["logtape", "meta"], lowestLevel: "fatal", sinks: ["lines"] },
    ],
  });
}

/**
 * The logger of a part of the program, such as `agent`.
 *
 * Messages may name properties: `log.info("Connected to {server}", { server })`.
 */
export function logger(part: string): Logger {
  return getLogger([ROOT, part]);
}

/** Whether every packet is to be logged; ask before building the line. */
export function logsPackets(verbosity: number): boolean {
  return levelOf(verbosity) === "trace";
}

function levelOf(verbosity: number): LogLevel {
  if (verbosity >= 4) return "trace";
  return verbosity >= 1 ? "debug" : "info";
}

function textLine(record: LogRecord): string {
  const level = record.level === "warning"
    ? "WARN"
    : record.level.toUpperCase();
  const time = new Date(record.timestamp).toISOString();
  const part = record.category.slice(1).join(".");
  return `${time} ${level.padEnd(5)} ${part}: ${oneLine(messageOf(record))}\n`;
}

function jsonLine(record: LogRecord): string {
  return JSON.stringify({
    time: new Date(record.timestamp).toISOString(),
    level: record.level,
    part: record.category.slice(1).join("."),
    message: messageOf(record),
    ...plain(record.properties),
  }) + "\n";
}

/** Literal parts and values take turns in a record's message. */
function messageOf(record: LogRecord): string {
  return record.message.map((piece, index) =>
    index % 2 === 0 ? String(piece) : valueText(piece)
  ).join("");
}

function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return String(value);
  if (value instanceof Error) return value.message;
  return JSON.stringify(value, bigintAsText) ?? String(value);
}

/** Properties as JSON can hold them. */
function plain(properties: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(properties).map(([key, value]) => {
    const isText = typeof value === "bigint" || value instanceof Error;
    return [key, isText ? valueText(value) : value];
  });
  return Object.fromEntries(entries);
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** A peer's text must not forge further lines or move the cursor. */
function oneLine(text: string): string {
  // deno-lint-ignore no-control-regex -- control characters are the point.
  return text.replace(/[\u0000-\u001f\u007f]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(2, "0");
    return character === "\n" ? "\\n" : `\\x${code}`;
  });
}

const encoder = new TextEncoder();

function writeStderr(line: string): void {
  let octets = encoder.encode(line);
  try {
    while (octets.length > 0) {
      octets = octets.subarray(Deno.stderr.writeSync(octets));
    }
  } catch {
    // Nobody reads the log any more; that is no reason to stop working.
  }
}

/**
 * The log of the process: one line per event on stderr, for people or machines.
 *
 * The only file that knows LogTape; it does the job of `@std/log`. Levels are
 * klog's numbers, because `--v` is what users of Konnectivity have at hand.
 *
 * @module
 */

import {
  configureSync,
  getLogger,
  jsonLinesFormatter,
  type LogLevel,
  type LogRecord,
} from "@logtape/logtape";

/** How a log line looks. */
export type LogFormat = "text" | "json";

/**
 * A place to log to. Messages are complete sentences or clauses without
 * placeholders; what varies is in `fields` as well where a machine may ask.
 */
export interface Log {
  /** Needs somebody's attention. */
  error(message: string, fields?: LogFields): void;
  /** Works, but is not as it should be. */
  warn(message: string, fields?: LogFields): void;
  /** Once in a process's life: start, stop, listeners. `--v=1`. */
  info(message: string, fields?: LogFields): void;
  /** Links, refusals, reconnects. `--v=2`, the default. */
  event(message: string, fields?: LogFields): void;
  /** Every conduit. `--v=4`. */
  detail(message: string, fields?: LogFields): void;
  /** True when every packet is wanted: `--v=10`. Ask before building a line. */
  readonly wantsPackets: boolean;
  /** One packet. */
  packet(message: string): void;
}

/** A log whose level can be set while it is in use. */
export interface LeveledLog extends Log {
  /** `--v`, 0 to 10; the next line is judged by it. */
  level: number;
}

/** What a machine may want to filter by. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** `--v` from which on each kind of line is written. */
const LEVELS = { info: 1, event: 2, detail: 4, packet: 10 } as const;

/**
 * Opens the log.
 *
 * @param level `--v`, 0 to 10.
 */
export function openLog(
  component: string,
  options: { readonly format: LogFormat; readonly level: number },
): LeveledLog {
  const format = options.format === "json" ? jsonLinesFormatter : textLine;
  const encoder = new TextEncoder();
  configureSync({
    reset: true,
    sinks: {
      stderr: (record) => {
        Deno.stderr.writeSync(encoder.encode(format(record)));
      },
    },
    loggers: [
      { category: [], sinks: ["stderr"], lowestLevel: "trace" },
      // Its notice about itself is not the user's business.
      { category: ["logtape", "meta"], sinks: [], lowestLevel: "fatal" },
    ],
  });
  const logger = getLogger([component]);
  const write = (kind: LogLevel) => (message: string, fields?: LogFields) =>
    logger[kind](withoutPlaceholders(message), { ...fields });
  let { level } = options;
  const from = (least: number, kind: LogLevel) => {
    const writeKind = write(kind);
    return (message: string, fields?: LogFields) => {
      if (level >= least) writeKind(message, fields);
    };
  };
  return {
    get level() {
      return level;
    },
    set level(next) {
      level = next;
    },
    error: write("error"),
    warn: write("warning"),
    info: from(LEVELS.info, "info"),
    event: from(LEVELS.event, "info"),
    detail: from(LEVELS.detail, "debug"),
    get wantsPackets() {
      return level >= LEVELS.packet;
    },
    packet: from(LEVELS.packet, "trace"),
  };
}

/** Peers' words may hold braces, which mean something to the logger. */
function withoutPlaceholders(message: string): string {
  return message.replaceAll("{", "{{").replaceAll("}", "}}");
}

/** `2026-11-21T13:39:46.510Z INFO agent linked agent=a1 carrier=streams` */
function textLine(record: LogRecord): string {
  const time = new Date(record.timestamp).toISOString();
  const level = record.level.toUpperCase();
  const fields = Object.entries(record.properties)
    .map(([name, value]) => ` ${name}=${fieldText(value)}`)
    .join("");
  const line = `${time} ${level} ${record.message.join("")}${fields}`;
  // A peer's words must not be able to forge a line of their own.
  return `${line.replace(CONTROL, "\u{fffd}")}\n`;
}

// deno-lint-ignore no-control-regex -- those are what must not get through
const CONTROL = /[\x00-\x1f\x7f-\x9f]/g;

function fieldText(value: unknown): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}

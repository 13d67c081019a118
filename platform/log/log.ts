/**
 * The log of the process: one line per event on stderr, for people or machines.
 *
 * The only file that knows LogTape; it does the job of `@std/log`. Levels are
 * klog's numbers, because users of Konnectivity know `--v`.
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
import { codeOf } from "../errors/error_code.ts";
import { asFaultOfOurs, tellsMissingRight } from "../errors/missing_right.ts";
import { lineKey } from "./line_key.ts";
import { RepeatedLines } from "./repeated_lines.ts";
import { printable } from "../text/printable.ts";
import type { Code } from "../../proto/codes/codes.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How a log line looks. */
export type LogFormat = "text" | "json";

/**
 * A place to log to. Messages are complete sentences or clauses without
 * placeholders; variable parts are in `fields` as well, for machines.
 *
 * A line that may repeat has a `key`, its subject: of equal lines with one key
 * the first is written, and the others are counted (`repeated_lines.ts`).
 */
export interface Log {
  /** Needs an operator's attention. */
  error(message: string, fields: ProblemFields, key?: string): void;
  /** Works, but is not as it should be. */
  warn(message: string, fields: ProblemFields, key?: string): void;
  /** Once in a process's life: start, stop, listeners. `--v=1`. */
  info(message: string, fields?: LogFields, key?: string): void;
  /** Links, refusals, reconnects. `--v=2`, the default. */
  event(message: string, fields?: LogFields, key?: string): void;
  /** True when every connection is wanted: check before building a line. */
  readonly wantsDetails: boolean;
  /** Every connection. `--v=4`. */
  detail(message: string, fields?: LogFields): void;
  /**
   * True when every packet is wanted: `--v=10`. Check before building a line.
   */
  readonly wantsPackets: boolean;
  /** One packet. */
  packet(message: string): void;
}

/** A log whose level can be set while it is in use. */
export interface LeveledLog extends Log {
  /** `--v`, 0 to 10; it decides from the next line on. */
  level: number;
  /** Writes held repeated lines; called when the process ends. */
  flush(): void;
}

/** Fields that a machine may want to filter by. */
export type LogFields = Readonly<
  Record<string, string | number | boolean | undefined>
>;

/** The code of a line about a problem: `tunnel explain` knows more about it. */
export type ProblemFields = LogFields & { readonly code: Code };

/** `--v` from which on each kind of line is written. */
const LEVELS = { info: 1, event: 2, detail: 4, packet: 10 } as const;

/** Longest message: room for a stack, none for what a peer may be called. */
const MESSAGE_LENGTH_MAX = 4_000;

/** Longest value of a field, but for a stack. */
const FIELD_LENGTH_MAX = 1_000;

/** Limit on a key: peers must not decide how much is remembered. */
const KEY_LENGTH_MAX = 500;

/** Held lines must not keep a process alive. */
const RELAXED_TIMERS: Timers = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const id = setTimeout(callback, delayMs);
    Deno.unrefTimer(id);
    return { cancel: () => clearTimeout(id) };
  },
};

/**
 * Opens the log.
 *
 * @param level `--v`, 0 to 10.
 */
export function openLog(
  component: string,
  options: {
    readonly format: LogFormat;
    readonly level: number;
    /** The machine's clock, unless given. */
    readonly timers?: Timers;
    /** In every line. */
    readonly fields?: LogFields | undefined;
    /** See {@linkcode LineDevice}; standard error is always ready if absent. */
    readonly isReady?: LineDevice["isReady"];
  },
): LeveledLog {
  const { timers = RELAXED_TIMERS, isReady = () => true } = options;
  const base = getLogger([component]);
  const logger = options.fields === undefined
    ? base
    : base.with(options.fields);
  const repeated = new RepeatedLines(timers);
  const output = new LineOutput(
    { isReady, write: (bytes) => Deno.stderr.writeSync(bytes) },
    timers,
    (lines) =>
      logger.warn(`${lines} lines are missing here: ${MISSING_WHY}`, {
        code: "TUN905",
      }),
  );
  writeToStderr(options.format, output);
  globalThis.addEventListener("unload", () => {
    repeated.flush();
    output.end();
  });
  let { level } = options;
  const from = (least: number, kind: LogLevel): Log["event"] => {
    const write = logger[kind].bind(logger);
    return (message, fields, key) => {
      if (level < least) return;
      const said = asFaultOfOurs(message);
      const text = withoutPlaceholders(printable(said, MESSAGE_LENGTH_MAX));
      const ours = tellsMissingRight(message) ? { code: "TUN907" } : {};
      const properties = { ...printableFields(fields), ...ours };
      if (key === undefined) return write(text, properties);
      const subject = printable(key, KEY_LENGTH_MAX);
      const news = `${kind} ${lineKey(text)}`;
      repeated.add(subject, news, (note) => write(text + note, properties));
    };
  };
  return {
    get level() {
      return level;
    },
    set level(next) {
      level = next;
    },
    flush: () => repeated.flush(),
    error: from(0, "error"),
    warn: from(0, "warning"),
    info: from(LEVELS.info, "info"),
    event: from(LEVELS.event, "info"),
    get wantsDetails() {
      return level >= LEVELS.detail;
    },
    detail: from(LEVELS.detail, "debug"),
    get wantsPackets() {
      return level >= LEVELS.packet;
    },
    packet: from(LEVELS.packet, "trace"),
  };
}

function writeToStderr(logFormat: LogFormat, output: LineOutput): void {
  const format = logFormat === "json" ? jsonLinesFormatter : textLine;
  const encoder = new TextEncoder();
  configureSync({
    reset: true,
    sinks: {
      stderr: (record) => output.write(encoder.encode(format(record))),
    },
    loggers: [
      { category: [], sinks: ["stderr"], lowestLevel: "trace" },
      // Its notice about itself is not the user's business.
      { category: ["logtape", "meta"], sinks: [], lowestLevel: "fatal" },
    ],
  });
}

function printableFields(fields: LogFields = {}): LogFields {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        name,
        typeof value === "string"
          ? printable(
            asFaultOfOurs(value),
            name === "stack" ? MESSAGE_LENGTH_MAX : FIELD_LENGTH_MAX,
          )
          : value,
      ]),
  );
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
  return `${time} ${level} ${record.message.join("")}${fields}\n`;
}

function fieldText(value: unknown): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}

/** Kept for a reader that has stopped; further lines are counted. */
export const KEPT_BYTES_MAX: number = 256 * 1024;

/** What a pipe that says it is ready takes without waiting (`PIPE_BUF`). */
const PIECE_BYTES = 4_096;

/** Between two checks whether the reader reads again. */
const LOOK_AGAIN_MS = 100;

/**
 * How long a process waits for its reader when it ends, because the last lines
 * may give the reason.
 */
const LAST_WORDS_MS = 1_000;

/** What lines are written to. */
interface LineDevice {
  /**
   * Whether a piece can be written without blocking, checked for up to this
   * many milliseconds, during which the process does nothing else.
   */
  isReady(timeoutMs: number): boolean;
  /** @returns How many bytes were taken. */
  write(bytes: Uint8Array): number;
}

const MISSING_WHY = "they were not read, or the disk was full";

/** The disk, or what a user may have of it, is full, or out of order. */
const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO"]);

/**
 * Lines on their way to the reader of the log. When the reader of a pipe stops,
 * a write would block, with the whole process: so lines are kept for a while,
 * and counted when there are too many. It knows neither the content of a line
 * nor its destination.
 */
export class LineOutput {
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #missing = 0;
  #timer: Timer | undefined;

  /** @param sayMissing Writes a line about those that are not there. */
  constructor(
    private readonly device: LineDevice,
    private readonly timers: Timers,
    private readonly sayMissing: (lines: number) => void,
  ) {}

  write(line: Uint8Array): void {
    if (this.#keptBytes + line.length > KEPT_BYTES_MAX) {
      this.#missing++;
      return;
    }
    this.#kept.push(line);
    this.#keptBytes += line.length;
    // While a timer checks, no other check is needed: it was not ready just
    // now.
    if (this.#timer === undefined) this.#flush(0);
  }

  /** Before the process ends: waits a little for the reader. */
  end(): void {
    this.#flush(LAST_WORDS_MS);
    this.#timer?.cancel();
  }

  #flush(timeoutMs: number): void {
    while (this.#kept.length > 0) {
      if (!this.device.isReady(timeoutMs) || !this.#writePiece()) {
        return this.#lookAgain();
      }
    }
    const missing = this.#missing;
    if (missing === 0) return;
    this.#missing = 0;
    this.sayMissing(missing);
  }

  /** @returns Whether it could be: a log is a file, too, on a disk with room. */
  #writePiece(): boolean {
    const line = this.#kept[0]!;
    let taken: number;
    try {
      taken = this.device.write(line.subarray(0, PIECE_BYTES));
    } catch (error) {
      if (NO_ROOM.has(codeOf(error))) return false;
      throw error;
    }
    this.#keptBytes -= taken;
    if (taken === line.length) this.#kept.shift();
    else this.#kept[0] = line.subarray(taken);
    return true;
  }

  #lookAgain(): void {
    this.#timer = this.timers.after(LOOK_AGAIN_MS, () => {
      this.#timer = undefined;
      this.#flush(0);
    });
  }
}

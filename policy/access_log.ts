/**
 * The access log: a line for each finished or failed connection, in a file that
 * is rotated and opened again as audit logs are, or on standard output or
 * error.
 *
 * It is for people and their tools, and proves nothing: with a sample most
 * connections are left out, and a file that cannot be written loses lines. The
 * audit log is the complete one.
 *
 * @module
 */

import type { NamedTools } from "../platform/program/tools.ts";
import type {
  AccessRecorder,
  ConnectionRecord,
} from "../platform/log/connection_log.ts";
import {
  ACCESS_LINES,
  type AccessFormat,
  commonSecond,
} from "./access_format.ts";
import { type AuditFiles, systemAuditFiles } from "./audit_file.ts";
import { AuditLog, type AuditLogOptions } from "./audit_log.ts";
import { LineTime } from "./dial_record.ts";

/**
 * How long a line waits for others. A write costs as much as two hundred lines,
 * whatever its length, and a reader does not notice the delay.
 */
export const ACCESS_FLUSH_MS = 400;

/**
 * Lines that are made at once: alone, each would find the processor's caches
 * full of something else.
 */
const RUN_LINES = 32;

/** The destination, the sample and the format. */
export interface AccessLogOptions {
  /** `-` is standard output, `stderr` standard error. */
  readonly file: AuditLogOptions;
  readonly format: AccessFormat;
  /** The part of connections that is written down, in (0, 1]. */
  readonly sample: number;
}

/** What an access log takes from the process. */
export interface AccessLogEnvironment extends NamedTools {
  /** The machine's; for tests. */
  readonly auditFiles?: AuditFiles;
  readonly random?: () => number;
}

/** See the module description. */
export class AccessLog implements AccessRecorder {
  readonly #writer: AuditLog;
  readonly #time: LineTime;
  /** Connections that are over, without a line as yet, and when they ended. */
  readonly #over: ConnectionRecord[] = [];
  readonly #endsMs = new Float64Array(RUN_LINES);
  #lines = 0;

  private constructor(
    private readonly options: AccessLogOptions,
    private readonly environment: AccessLogEnvironment,
  ) {
    const { file, format } = options;
    const { log, timers, metrics, prefix } = environment;
    this.#time = format === "common"
      ? new LineTime(timers, commonSecond)
      : new LineTime(timers);
    const stream = standardStreams(file.path);
    this.#writer = AuditLog.open(
      stream === undefined ? file : { ...file, bytesMax: Infinity },
      {
        log,
        timers,
        auditFiles: environment.auditFiles ?? stream ??
          systemAuditFiles("--access-log"),
        flushMs: ACCESS_FLUSH_MS,
        fill: () => this.#makeLines(),
        what: "access log",
        gapLine: (lines, time) => gapLine(format, lines, time),
      },
    );
    metrics.computed(
      "counter",
      `${prefix}access_lines_total`,
      "Lines of the access log, those that could not be written included.",
      () => this.#lines,
    );
    metrics.computed(
      "counter",
      `${prefix}access_dropped_lines_total`,
      "Lines that are missing in the access log: it could not be written.",
      () => this.#writer.dropped,
    );
  }

  /**
   * @param options Absent: none is wanted.
   * @throws {AuditLogError} When the path can never work.
   */
  static open(
    options: AccessLogOptions | undefined,
    environment: AccessLogEnvironment,
  ): AccessLog | undefined {
    return options && new AccessLog(options, environment);
  }

  /** See {@linkcode AuditLog.problem}. */
  get problem(): string | undefined {
    return this.#writer.problem;
  }

  /**
   * By chance, and not by the id: callers choose ids, and must not be able to
   * hide a connection.
   */
  draws(): boolean {
    const { sample } = this.options;
    const { random = Math.random } = this.environment;
    return sample >= 1 || random() < sample;
  }

  record(connection: ConnectionRecord): void {
    this.#lines++;
    const waiting = this.#over.push(connection);
    this.#endsMs[waiting - 1] = this.environment.timers.now();
    // One that comes later than the end is counted as dropped.
    if (waiting === RUN_LINES || !this.#writer.isOpen) this.#makeLines();
    else this.#writer.schedule();
  }

  #makeLines(): void {
    const lineOf = ACCESS_LINES[this.options.format];
    const over = this.#over;
    let text = "";
    for (let at = 0; at < over.length; at++) {
      text += lineOf(over[at]!, this.#time, this.#endsMs[at]!);
    }
    if (over.length > 0) this.#writer.write(text, over.length);
    over.length = 0;
  }

  /** Opens the file again: it may have been moved away. */
  reopen(): void {
    this.#writer.reopen();
  }

  /** Writes everything. */
  async close(): Promise<void> {
    await this.#writer.close();
  }
}

/** What stands where lines are missing. */
function gapLine(format: AccessFormat, lines: number, time: string): string {
  switch (format) {
    case "json":
      return JSON.stringify({ time, event: "gap", lines });
    case "text":
      return `${time} event=gap lines=${lines}`;
    case "common":
      // In the form that parsers of such lines expect.
      return `- - - [${commonSecond(new Date(time))}] "GAP ${lines} lines" 0 0`;
  }
}

/** What `path` means; `undefined`: a file. */
export function standardStreams(path: string): AuditFiles | undefined {
  if (path === "-") return filesOf(Deno.stdout);
  return path === "stderr" ? filesOf(Deno.stderr) : undefined;
}

function filesOf(
  stream: { write(bytes: Uint8Array): Promise<number> },
): AuditFiles {
  return {
    check() {},
    open: () =>
      Promise.resolve({
        bytes: 0,
        async write(bytes: Uint8Array) {
          for (let at = 0; at < bytes.length;) {
            at += await stream.write(bytes.subarray(at));
          }
        },
        // Bytes that have left cannot be taken back: a line may be there twice.
        cut: () => Promise.resolve(),
        close() {},
      }),
    putAside: () => Promise.resolve(),
  };
}

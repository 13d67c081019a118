/**
 * A file of JSON lines about decisions, rotated by size.
 *
 * Adding a line never blocks and never fails: lines are kept in limited memory
 * and written in order in the background. While the file cannot be written (for
 * example a full disk) they wait; lines without room are dropped and counted,
 * and a line in the file says how many are missing.
 *
 * It does not know what the lines mean.
 *
 * @module
 */

import type { Tools } from "../platform/program/tools.ts";
import { messageOf } from "../platform/errors/error_code.ts";
import { atMost } from "../platform/time/deadline.ts";
import { AuditBuffer, type AuditChunk, CHUNK_BYTES } from "./audit_buffer.ts";
import {
  type AuditFile,
  type AuditFiles,
  systemAuditFiles,
} from "./audit_file.ts";

/** Most that waits to be written; some 15,000 lines, minutes of a full disk. */
export const PENDING_BYTES_MAX = 4 * 1024 * 1024;

/** How long a line waits for others to be written with. */
export const FLUSH_MS = 100;

/** After a failure, when to try again. */
export const AUDIT_RETRY_MS = 2_000;

/** How long the end of the process may be held up. */
export const CLOSE_TIMEOUT_MS = 2_000;

/** The file, and its limits. */
export interface AuditLogOptions {
  readonly path: string;
  /** A file of this size is put aside. */
  readonly bytesMax: number;
  /** Files in all: `path`, `path.1` (the newest put aside), `path.2` … */
  readonly filesMax: number;
}

/** What an audit log takes from the process. */
export interface AuditLogEnvironment extends Tools {
  /** The machine's for audit logs; others, and for tests of machines that fail. */
  readonly auditFiles?: AuditFiles;
  /** How long a line waits for others; {@linkcode FLUSH_MS} unless given. */
  readonly flushMs?: number;
  /** Adds lines that are made only when they are to be written. */
  readonly fill?: () => void;
  /** For sentences; "the audit log" by default. */
  readonly what?: string;
  /** The line that replaces `lines` dropped ones; an audit log's by default. */
  readonly gapLine?: (lines: number, time: string) => string;
}

const encoder = new TextEncoder();

/** One audit log, from its first line to its last. */
export class AuditLog {
  readonly #tools: Required<AuditLogEnvironment>;
  readonly #buffer: AuditBuffer;
  #file: AuditFile | undefined;
  #fileBytes = 0;
  /** Nearly all lines find room; it grows with the first that does not. */
  #bytes = new Uint8Array(4_096);
  /** Dropped since the last line that was kept. */
  #gap = 0;
  #dropped = 0;
  #written = 0;
  #work: Promise<void> | undefined;
  #state: "open" | "closing" | "closed" = "open";
  #isTimerSet = false;
  #mustReopen = false;
  #problem = "";
  #rotationProblem = "";

  private constructor(
    private readonly options: AuditLogOptions,
    environment: AuditLogEnvironment,
  ) {
    const { log, timers, flushMs = FLUSH_MS, what = "audit log" } = environment;
    const { fill = () => {} } = environment;
    const { auditFiles = systemAuditFiles(), gapLine = auditGap } = environment;
    this.#tools = { log, timers, auditFiles, flushMs, what, gapLine, fill };
    this.#buffer = new AuditBuffer(PENDING_BYTES_MAX, options.bytesMax);
  }

  /**
   * Opens the file, so that a wrong path is known at the start.
   *
   * @throws {AuditLogError} When the path can never work. A disk that is full
   *   now is no reason not to start.
   */
  static open(
    options: AuditLogOptions,
    environment: AuditLogEnvironment,
  ): AuditLog {
    const audit = new AuditLog(options, environment);
    audit.#tools.auditFiles.check(options.path);
    return audit;
  }

  /** Lines that were dropped, ever. */
  get dropped(): number {
    return this.#dropped;
  }

  /** One sentence, while it cannot be written. */
  get problem(): string | undefined {
    if (this.#problem === "") return undefined;
    return `Cannot write the ${this.#tools.what} ${this.options.path}: ` +
      `${this.#problem}; connections go on, lines wait in memory, and what ` +
      "finds no room is dropped";
  }

  /** Lines that are in the file. */
  get written(): number {
    return this.#written;
  }

  /** It has not begun to end. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  /**
   * Adds lines, or counts them as dropped. Never throws, never waits.
   *
   * @param text With its line breaks.
   */
  write(text: string, lines = 1): void {
    // One long gap, instead of single lines between a thousand small gaps.
    if (this.#gap > 0 && this.#buffer.bytes < PENDING_BYTES_MAX / 2) {
      this.#closeGap();
    }
    const isKept = this.#gap === 0 && this.#state !== "closed" &&
      this.#buffer.push(this.#bytesOf(text), lines);
    if (!isKept) {
      this.#gap += lines;
      this.#dropped += lines;
      return;
    }
    // So much is not left waiting for a timer.
    if (this.#buffer.bytes >= CHUNK_BYTES && this.#problem === "") {
      this.#startWork();
    } else this.schedule();
  }

  /** Opens the file again before the next line: it may have been moved away. */
  reopen(): void {
    this.#mustReopen = true;
  }

  /** Writes waiting lines, for a limited time, and closes the file. */
  async close(): Promise<void> {
    this.#tools.fill();
    this.#state = "closing";
    if (this.#gap > 0) this.#closeGap();
    await atMost(this.#tools.timers, CLOSE_TIMEOUT_MS, this.#finish());
    this.#state = "closed";
    const lost = this.#buffer.lines;
    if (lost === 0) return;
    this.#dropped += lost;
    this.#tools.log.error(
      `The ${this.#tools.what} ${this.options.path} ends without its last ${lost} ` +
        "lines: they could not be written",
      { code: "TUN905" },
    );
  }

  async #finish(): Promise<void> {
    await this.#work;
    do {
      await this.#writeAll();
      this.#tools.fill();
    } while (this.#buffer.lines > 0 && this.#problem === "");
    this.#closeFile();
  }

  /** The reader of the file must not take a gap for silence. */
  #closeGap(): void {
    const time = new Date().toISOString();
    const line = this.#tools.gapLine(this.#gap, time);
    if (this.#buffer.push(this.#bytesOf(`${line}\n`))) this.#gap = 0;
  }

  /** Valid until the next line. */
  #bytesOf(line: string): Uint8Array {
    // A character has three bytes at most.
    const room = 3 * line.length;
    if (room > this.#bytes.length) this.#bytes = new Uint8Array(2 * room);
    const { written } = encoder.encodeInto(line, this.#bytes);
    return this.#bytes.subarray(0, written);
  }

  /** Writes what there is soon; `fill` may bring it then. */
  schedule(): void {
    if (this.#state !== "open") return;
    if (this.#isTimerSet || this.#work !== undefined) return;
    this.#isTimerSet = true;
    const delayMs = this.#problem === "" ? this.#tools.flushMs : AUDIT_RETRY_MS;
    this.#tools.timers.after(delayMs, () => {
      this.#isTimerSet = false;
      this.#tools.fill();
      this.#startWork();
    });
  }

  #startWork(): void {
    if (this.#state !== "open") return;
    this.#work ??= this.#writeAll().finally(() => {
      this.#work = undefined;
      this.#tools.fill();
      if (this.#buffer.lines > 0) this.schedule();
    });
  }

  /**
   * Writes the lines that wait now, until the first failure. Never rejects.
   *
   * Later lines wait for their own turn: otherwise, under load, each write
   * would contain only the few lines that came during the previous one.
   */
  async #writeAll(): Promise<void> {
    let left = this.#buffer.lines;
    try {
      while (left > 0) {
        const chunk = this.#buffer.first()!;
        left -= chunk.lines;
        await this.#writeChunk(chunk);
      }
      this.#recovered();
    } catch (error) {
      this.#failed(error);
    }
  }

  async #writeChunk({ bytes, used, lines }: AuditChunk): Promise<void> {
    const file = await this.#ready(used);
    try {
      await file.write(bytes.subarray(0, used));
    } catch (error) {
      // Lines that were written would be there twice after the next attempt.
      await file.cut(this.#fileBytes).catch(() => this.#closeFile());
      throw error;
    }
    this.#fileBytes += used;
    this.#written += lines;
    // It leaves memory when it is in the file, not before.
    this.#buffer.shift();
  }

  /** The file to write `bytes` to. */
  async #ready(bytes: number): Promise<AuditFile> {
    if (this.#mustReopen) {
      this.#mustReopen = false;
      this.#closeFile();
    }
    this.#file ??= await this.#openFile();
    const isFull = this.#fileBytes + bytes > this.options.bytesMax;
    if (isFull && this.#fileBytes > 0) {
      await this.#rotate();
      this.#file ??= await this.#openFile();
    }
    return this.#file;
  }

  async #openFile(): Promise<AuditFile> {
    const file = await this.#tools.auditFiles.open(this.options.path);
    this.#fileBytes = file.bytes;
    return file;
  }

  async #rotate(): Promise<void> {
    const { path, filesMax } = this.options;
    try {
      await this.#tools.auditFiles.putAside(path, filesMax);
      this.#rotationProblem = "";
    } catch (error) {
      // A file that is too long is better than one that has ended.
      const problem = messageOf(error);
      if (problem !== this.#rotationProblem) {
        this.#rotationProblem = problem;
        this.#tools.log.error(
          `Cannot put the full ${this.#tools.what} ${path} aside: ${problem}; it ` +
            "grows on",
          { code: "TUN905" },
        );
      }
      return;
    }
    this.#closeFile();
  }

  #closeFile(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #failed(error: unknown): void {
    const isFirst = this.#problem === "";
    this.#problem = messageOf(error);
    if (isFirst) this.#tools.log.error(this.problem!, { code: "TUN905" });
  }

  #recovered(): void {
    if (this.#problem === "") return;
    this.#problem = "";
    this.#tools.log.warn(
      `The ${this.#tools.what} ${this.options.path} can be written again`,
      { code: "TUN905", dropped: this.#dropped },
    );
  }
}

function auditGap(lines: number, time: string): string {
  return JSON.stringify({ time, event: "gap", lines });
}

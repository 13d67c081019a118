/**
 * A log that tests read, and wait for.
 *
 * @module
 */

import type { Log, LogFields } from "../../../platform/log/log.ts";
import { whenLate } from "./patience.ts";

/** A sentence that has changed fails its tests, and does not hang them. */
const LINE_DEADLINE_MS = 20_000;

/** One line, as it was written. */
export interface RecordedLine {
  readonly level: "error" | "warn" | "info" | "event" | "detail" | "packet";
  readonly message: string;
  readonly fields: LogFields;
}

/** Who waits, and for what. */
interface Waiter {
  readonly pattern: RegExp;
  readonly resolve: (line: RecordedLine) => void;
}

/** See the module description. */
export class RecordedLog implements Log {
  readonly lines: RecordedLine[] = [];
  wantsDetails = true;
  wantsPackets = false;
  #waiters: Waiter[] = [];

  error = this.#write("error");
  warn = this.#write("warn");
  info = this.#write("info");
  event = this.#write("event");
  detail = this.#write("detail");
  packet = this.#write("packet");

  /** Takes what was written so far away, as `level: message`. */
  take(): string[] {
    return this.lines.splice(0)
      .map(({ level, message }) => `${level}: ${message}`);
  }

  /** Lines whose message matches, oldest first. */
  matching(pattern: RegExp): RecordedLine[] {
    return this.lines.filter(({ message }) => pattern.test(message));
  }

  /** The first line that matches, written already or to come. */
  until(pattern: RegExp): Promise<RecordedLine> {
    const [line] = this.matching(pattern);
    return line === undefined ? this.next(pattern) : Promise.resolve(line);
  }

  /** The next line to be written that matches. */
  next(pattern: RegExp): Promise<RecordedLine> {
    return new Promise((resolve, reject) => {
      const inTime = whenLate(LINE_DEADLINE_MS, () => {
        const said = this.lines.map(({ message }) => message).join("\n");
        reject(new Error(`no line matches ${pattern}; the lines:\n${said}`));
      });
      this.#waiters.push({
        pattern,
        resolve: (line) => {
          inTime();
          resolve(line);
        },
      });
    });
  }

  #write(level: RecordedLine["level"]) {
    return (message: string, given: LogFields = {}, _key?: string) => {
      // As a log does: what has no value is not written.
      const fields = Object.fromEntries(
        Object.entries(given).filter(([, value]) => value !== undefined),
      );
      const line = { level, message, fields };
      this.lines.push(line);
      const due = this.#waiters.filter(({ pattern }) => pattern.test(message));
      this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
      for (const { resolve } of due) resolve(line);
    };
  }
}

/** A log whose lines are told as `level: message`, as they come. */
export function recordedLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const log = new RecordedLog();
  const at = (level: string) => (message: string) =>
    void lines.push(`${level}: ${message}`);
  log.error = at("error");
  log.warn = at("warn");
  log.info = at("info");
  log.event = at("event");
  log.detail = at("detail");
  log.packet = at("packet");
  return { log, lines };
}

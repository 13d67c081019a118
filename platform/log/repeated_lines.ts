/**
 * Lines of a log that repeat: the first is written, the others are counted, and
 * the last of them is written with their count.
 *
 * It has neither a log nor a clock. Its memory is limited, so a key may contain
 * a peer's text. A peer that always sends new text gets some lines a second;
 * the others are counted together.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * How long repetitions of a line are gathered: at first, and the longer the
 * longer it goes on.
 */
export const REPEATS_GATHER_MS: readonly number[] = [10_000, 60_000, 600_000];

/** Keys that are remembered; the oldest gives way. */
export const REPEATS_KEYS_MAX = 256;

/** Other texts of one key that are written while it is gathered. */
export const TEXTS_MAX = 20;

/** New keys in a second while more come than are remembered. */
export const CROWD_PER_SECOND = 10;

/** The key under which surplus lines are gathered; no line has it. */
const CROWD_KEY = "\0crowd";

/** Writes a line, with a note behind its message. */
export type WriteLine = (note: string) => void;

/** The lines of one key. */
interface Entry {
  /** Index of {@linkcode REPEATS_GATHER_MS}. */
  stage: number;
  /** Until then it is gathered. */
  untilMs: number;
  held: number;
  /** The last held line. */
  write: WriteLine;
  /** When that came, as a person reads it. */
  lastMs: number;
  /** The last written line. */
  text: string;
  /** How many others have taken its place meanwhile. */
  texts: number;
  /** The held lines are similar and not equal. */
  isCrowd: boolean;
  timer: Timer | undefined;
}

export class RepeatedLines {
  readonly #entries = new Map<string, Entry>();
  #crowdSinceMs = -Infinity;
  #crowdNew = 0;

  /** @param wallMs The machine's time, milliseconds since 1970. */
  constructor(
    private readonly timers: Timers,
    private readonly wallMs: () => number = Date.now,
  ) {}

  /**
   * Takes a line.
   *
   * @param key Lines of one key have one subject: only equal lines repeat each
   *   other.
   * @param text The line, without the parts that differ each time.
   * @param write Called now, later, or never when a later line replaces it.
   */
  add(key: string, text: string, write: WriteLine): void {
    const nowMs = this.timers.now();
    let entry = this.#entries.get(key);
    if (entry === undefined && !this.#mayBeNew(nowMs)) {
      key = text = CROWD_KEY;
      entry = this.#entries.get(key);
    }
    if (entry === undefined || isOver(entry, nowMs)) {
      this.#remember(key, text, nowMs, write);
      return write("");
    }
    if (entry.text !== text) {
      if (entry.texts++ < TEXTS_MAX) {
        reportHeld(entry);
        entry.text = text;
        return write("");
      }
      entry.isCrowd = true;
    }
    entry.held++;
    entry.write = write;
    entry.lastMs = this.wallMs();
    entry.timer ??= this.timers.after(
      entry.untilMs - nowMs,
      () => this.#report(entry),
    );
  }

  /** Writes held lines: there may be no later chance. */
  flush(): void {
    for (const entry of this.#entries.values()) reportHeld(entry);
    this.#entries.clear();
  }

  /** Whether this line may be written, or there are too many new ones. */
  #mayBeNew(nowMs: number): boolean {
    const [oldest] = this.#entries.values();
    const isCrowded = this.#entries.size >= REPEATS_KEYS_MAX &&
      oldest!.untilMs > nowMs;
    if (!isCrowded) return true;
    if (nowMs - this.#crowdSinceMs >= 1_000) {
      this.#crowdSinceMs = nowMs;
      this.#crowdNew = 0;
    }
    return this.#crowdNew++ < CROWD_PER_SECOND;
  }

  #remember(key: string, text: string, nowMs: number, write: WriteLine): void {
    this.#entries.delete(key);
    if (this.#entries.size >= REPEATS_KEYS_MAX) this.#forgetOldest();
    this.#entries.set(key, {
      stage: 0,
      untilMs: nowMs + REPEATS_GATHER_MS[0]!,
      held: 0,
      write,
      text,
      texts: 0,
      lastMs: 0,
      isCrowd: key === CROWD_KEY,
      timer: undefined,
    });
  }

  #forgetOldest(): void {
    for (const [key, entry] of this.#entries) {
      this.#entries.delete(key);
      return reportHeld(entry);
    }
  }

  #report(entry: Entry): void {
    reportHeld(entry);
    entry.texts = 0;
    entry.isCrowd = entry.text === CROWD_KEY;
    entry.stage = Math.min(entry.stage + 1, REPEATS_GATHER_MS.length - 1);
    entry.untilMs = this.timers.now() + REPEATS_GATHER_MS[entry.stage]!;
  }
}

/** Nothing came for a while: the next line is news. */
function isOver(entry: Entry, nowMs: number): boolean {
  return entry.held === 0 && nowMs >= entry.untilMs;
}

function reportHeld(entry: Entry): void {
  entry.timer?.cancel();
  entry.timer = undefined;
  const { held } = entry;
  if (held === 0) return;
  entry.held = 0;
  const others = entry.isCrowd ? "others" : "same";
  entry.write(` (${others}, ${held} more until ${isoTime(entry.lastMs)})`);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

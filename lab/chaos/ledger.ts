/**
 * What callers went through, in order of time: each dial, each standstill, each
 * conduit that broke, each byte that was not the one that belonged there.
 *
 * @module
 */

import type { Protocol } from "./entrance.ts";

/** Which way a conduit goes, as far as its caller knows. */
export interface Path {
  readonly protocol: Protocol;
  readonly target: string;
  /** Absent where a program of ours chose it. */
  readonly server?: string;
  /** The machine of the agent; absent before the target said so. */
  readonly agent?: string;
  /** When the target had said so; absent before. */
  readonly openedMs?: number;
}

/** One attempt of a dial that came to nothing. */
export interface Attempt {
  readonly server: string;
  readonly cause: string;
}

export interface DialRecord {
  readonly atMs: number;
  readonly tookMs: number;
  readonly path: Path;
  /** Those before the one that came through, or all of them. */
  readonly attempts: readonly Attempt[];
  readonly isGood: boolean;
}

export interface StallRecord {
  readonly atMs: number;
  readonly tookMs: number;
  readonly path: Path;
}

export interface BreakRecord {
  readonly atMs: number;
  readonly path: Path;
  readonly cause: string;
  /** Sent and never seen again. */
  readonly lostBytes: number;
  /** The caller was told of an end in order: loss was taken for EOF. */
  readonly isEof: boolean;
}

export interface WrongBytesRecord {
  readonly atMs: number;
  readonly path: Path;
  readonly offset: number;
}

/** See the module description; times are `Date.now()`. */
export class Ledger {
  readonly dials: DialRecord[] = [];
  readonly stalls: StallRecord[] = [];
  readonly breaks: BreakRecord[] = [];
  readonly wrong: WrongBytesRecord[] = [];
  /** Echoed and compared. */
  bytes = 0;

  /** What happened, or was still going on, at `sinceMs` and later. */
  since(sinceMs: number): Ledger {
    const part = new Ledger();
    const isLate = ({ atMs, tookMs = 0 }: { atMs: number; tookMs?: number }) =>
      atMs + tookMs >= sinceMs;
    part.dials.push(...this.dials.filter(isLate));
    part.stalls.push(...this.stalls.filter(isLate));
    part.breaks.push(...this.breaks.filter(isLate));
    part.wrong.push(...this.wrong.filter(isLate));
    return part;
  }
}

/** How often each cause came, the most frequent first. */
export function countCauses(causes: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const cause of causes) counts.set(cause, (counts.get(cause) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one);
}

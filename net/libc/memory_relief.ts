/**
 * Gives memory back to the system when a burst of work is over.
 *
 * A process that has carried 10,000 connections keeps what they used: the
 * collector runs only while garbage is produced, and the C library returns free
 * memory only from the top of its heap. On a small node other programs need
 * that memory. So when the process is nearly idle and uses much more memory
 * than after the last relief, the garbage is collected, and free memory and the
 * pages of the program's file are returned. That takes some 40 ms, so it waits
 * for an idle moment.
 *
 * Only after a minute of rest are the heap's last pages returned, some 10 MB:
 * V8 then forgets the shapes of objects that no longer exist, and with them all
 * code that it has optimized for these. Right after each burst this made new
 * connections of the next one cost an eighth more CPU.
 *
 * Memory that is free already is returned under load, too, each time that use
 * has grown enough to be worth it: 0.2 ms when there is nothing, 10 ms for 65
 * MB. V8's compilers leave 20 MB behind in the first seconds of a load, and a
 * thousand connections that come and go left 65 MB in ten minutes.
 *
 * Near the limit of its control group a process is relieved under load, too: V8
 * lets garbage grow by what the machine has (new connections: 5 MB a second),
 * and the kernel kills who needs more than the limit.
 *
 * @module
 */

import { sharedBufferPool } from "../../proto/bytes/buffer_pool.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  collectAll,
  collectEverything,
} from "../../platform/process/garbage.ts";
import { cpuSeconds } from "../../platform/metrics/process_metrics.ts";
import { openLibc } from "./libc.ts";
import { memoryLimitBytes } from "./memory_limit.ts";
import { ownBytes, releaseProgramPages } from "./program_pages.ts";

/** Time between two looks; a burst is over after a whole quiet interval. */
export const MEMORY_LOOK_INTERVAL_MS = 1_000;

/**
 * Least time between two reliefs. With less, each pause between bursts would
 * count as their end, and cost a relief.
 */
export const RELIEF_INTERVAL_MS = 10_000;

/** A process that has done nothing for so long is at rest. */
export const REST_MS = 60_000;

/** While much is held that was in use: the longest time between two. */
export const HELD_INTERVAL_MS_MAX = 600_000;

/** Growth below this is not worth a pause. */
export const WORTHWHILE_BYTES: number = 8 * 1024 * 1024;

/** Growth that is worth one at once, however long ago the last one was. */
export const SURGE_BYTES: number = 24 * 1024 * 1024;

/** With less memory than this, the time between two looks is the short one. */
const SMALL_LIMIT_BYTES = 256 * 1024 * 1024;
const SHORT_LOOK_INTERVAL_MS = 200;

/** Of the limit; the rest is the kernel's (sockets) and V8's compilers'. */
const TIGHT_PART = 0.7;

/** Growth since the last relief that is worth another one, of the limit. */
const TIGHT_GROWTH_PART = 1 / 16;

/** With more CPU than this in use, a relief would be noticed. */
export const QUIET_CPU_PART = 0.02;

/**
 * `load`: what is garbage; `burst`: the program's pages, too; `rest`: what makes
 * the next burst fast, too.
 */
export type ReliefDepth = "load" | "burst" | "rest";

/** What `MemoryRelief` needs of the machine. */
export interface MemoryMachine {
  /** Resident, without the pages of files, which the system takes back itself. */
  ownBytes(): number;
  /** Of buffers, as long as the collector has not found them unused. */
  bufferBytes(): number;
  /** CPU time of this process so far, user and system. */
  cpuMs(): number;
  /** That the process may use; `Infinity` without a limit. */
  limitBytes(): number;
  /** Returns what is not used. */
  relieve(depth: ReliefDepth): void;
  /** Returns free memory without a collection. */
  trim(): void;
}

export class MemoryRelief {
  readonly #limitBytes: number;
  #timer: Timer | undefined;
  #lookedAtMs: number;
  #cpuMs: number;
  /** Memory in use after the last relief, or less. */
  #settledBytes = 0;
  /** Memory in use after the last trim, or less. */
  #trimmedBytes = 0;
  /** Memory in use after the last relief under load, or less. */
  #tightBytes = 0;
  /** Most that buffers have had since the last relief, and the last trim. */
  readonly #buffers = { sinceRelief: 0, sinceTrim: 0 };
  #relievedAtMs = -Infinity;
  /** Since the first relief: what starting up has used is not used again. */
  #busyAtMs = -Infinity;
  /** The last relief has left what makes the next burst fast. */
  #isWarm = false;
  /** Buffers that the last relief has found in use. */
  #heldBytes = 0;
  #heldIntervalMs = RELIEF_INTERVAL_MS;

  constructor(
    private readonly timers: Timers,
    private readonly machine: MemoryMachine = thisMachine,
  ) {
    this.#lookedAtMs = timers.now();
    this.#cpuMs = machine.cpuMs();
    this.#limitBytes = machine.limitBytes();
    this.#wait();
  }

  /** Looks no more. */
  stop(): void {
    this.#timer?.cancel();
  }

  #wait(): void {
    const isSmall = this.#limitBytes < SMALL_LIMIT_BYTES;
    const ms = isSmall ? SHORT_LOOK_INTERVAL_MS : MEMORY_LOOK_INTERVAL_MS;
    this.#timer = this.timers.after(ms, () => {
      this.#relieveWhenTight();
      const sinceMs = this.timers.now() - this.#lookedAtMs;
      if (sinceMs >= MEMORY_LOOK_INTERVAL_MS) this.#look();
      this.#wait();
    });
  }

  #relieveWhenTight(): void {
    if (this.#limitBytes === Infinity) return;
    const bytes = this.machine.ownBytes();
    // What fell by itself is the new measure here, too.
    this.#tightBytes = Math.min(bytes, this.#tightBytes);
    if (bytes < TIGHT_PART * this.#limitBytes) return;
    const grown = bytes - this.#tightBytes;
    if (grown < TIGHT_GROWTH_PART * this.#limitBytes) return;
    this.machine.relieve("load");
    this.#tightBytes = this.machine.ownBytes();
  }

  #look(): void {
    const isQuiet = this.#isQuiet();
    const bufferBytes = this.machine.bufferBytes();
    const peaks = this.#buffers;
    peaks.sinceRelief = Math.max(peaks.sinceRelief, bufferBytes);
    peaks.sinceTrim = Math.max(peaks.sinceTrim, bufferBytes);
    const grown = this.#trimmed(bufferBytes) - this.#settledBytes;
    const sinceMs = this.timers.now() - this.#relievedAtMs;
    if (!isQuiet) {
      if (sinceMs < Infinity) this.#busyAtMs = this.timers.now();
      return;
    }
    const worth = Math.max(grown, peaks.sinceRelief - bufferBytes);
    const isCooling = this.#isWarm && this.#isResting;
    if (worth >= SURGE_BYTES || isCooling) this.#relieve();
    else if (worth >= WORTHWHILE_BYTES) {
      if (sinceMs >= RELIEF_INTERVAL_MS) this.#relieve();
    } else if (this.#heldBytes >= SURGE_BYTES) {
      if (sinceMs >= this.#heldIntervalMs) this.#relieve();
    }
  }

  /** @returns What is in use when what is free was returned. */
  #trimmed(bufferBytes: number): number {
    const bytes = this.machine.ownBytes();
    // What fell by itself is the new measure.
    this.#settledBytes = Math.min(bytes, this.#settledBytes);
    this.#trimmedBytes = Math.min(bytes, this.#trimmedBytes);
    const worth = Math.max(
      bytes - this.#trimmedBytes,
      this.#buffers.sinceTrim - bufferBytes,
    );
    if (worth < WORTHWHILE_BYTES) return bytes;
    this.machine.trim();
    this.#buffers.sinceTrim = bufferBytes;
    return this.#trimmedBytes = this.machine.ownBytes();
  }

  #relieve(): void {
    this.#relievedAtMs = this.timers.now();
    this.#isWarm = !this.#isResting;
    this.machine.relieve(this.#isResting ? "rest" : "burst");
    this.#settledBytes = this.#trimmedBytes = this.machine.ownBytes();
    const bufferBytes = this.machine.bufferBytes();
    const isHeldStill = this.#heldBytes >= SURGE_BYTES &&
      Math.abs(bufferBytes - this.#heldBytes) < WORTHWHILE_BYTES;
    this.#heldIntervalMs = isHeldStill
      ? Math.min(2 * this.#heldIntervalMs, HELD_INTERVAL_MS_MAX)
      : RELIEF_INTERVAL_MS;
    this.#heldBytes = this.#buffers.sinceRelief = bufferBytes;
    // The relief itself is not work that keeps the next look from being quiet.
    this.#cpuMs = this.machine.cpuMs();
  }

  get #isResting(): boolean {
    return this.timers.now() - this.#busyAtMs >= REST_MS;
  }

  #isQuiet(): boolean {
    const [nowMs, cpuMs] = [this.timers.now(), this.machine.cpuMs()];
    const part = (cpuMs - this.#cpuMs) / (nowMs - this.#lookedAtMs);
    this.#lookedAtMs = nowMs;
    this.#cpuMs = cpuMs;
    return part < QUIET_CPU_PART;
  }
}

const thisMachine: MemoryMachine = {
  ownBytes,
  bufferBytes: () => Deno.memoryUsage().external,
  cpuMs: () => 1_000 * cpuSeconds(),
  limitBytes: memoryLimitBytes,
  relieve: (depth) => {
    sharedBufferPool.drop();
    if (depth === "rest") collectEverything();
    else collectAll();
    openLibc()?.malloc_trim(0n);
    if (depth !== "load") releaseProgramPages();
  },
  trim: () => void openLibc()?.malloc_trim(0n),
};

/**
 * How long the event loop of this process is not available: what the longest
 * turn took of the processor, whatever else runs on the machine meanwhile.
 *
 * @module
 */

import process from "node:process";

/** How often it is looked. */
const TICK_MS = 1;

/** Of the thread that asks: exact, where the files of `/proc` know it to a tick. */
const CLOCK_THREAD_CPUTIME_ID = 3;
const { clock_gettime } = Deno.dlopen("libc.so.6", {
  clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
}).symbols;

/** `struct timespec` */
const time = new BigInt64Array(2);

/** What was seen since the last report. */
export interface LoopReport {
  /** The longest time between two looks that the thread spent working. */
  readonly longestCpuMs: number;
  /** The longest time between two looks by the clock; others' work is in it. */
  readonly longestMs: number;
  /** Resident memory of the process. */
  readonly rssBytes: number;
  /** Of which objects of JavaScript. */
  readonly heapBytes: number;
  /** Processor time of the process, since its start. */
  readonly cpuMs: number;
}

/** See the module description. */
export class LoopWatch {
  #longestCpuMs = 0;
  #longestMs = 0;
  #atMs = performance.now();
  #cpuMs = threadCpuMs();
  readonly #timer = setInterval(() => this.#look(), TICK_MS);

  /** What was seen since it was asked last. */
  take(): LoopReport {
    this.#look();
    const { rss, heapUsed } = Deno.memoryUsage();
    const report = {
      longestCpuMs: this.#longestCpuMs,
      longestMs: this.#longestMs,
      rssBytes: rss,
      heapBytes: heapUsed,
      cpuMs: processCpuMs(),
    };
    this.#longestCpuMs = this.#longestMs = 0;
    return report;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const [atMs, cpuMs] = [performance.now(), threadCpuMs()];
    this.#longestMs = Math.max(this.#longestMs, atMs - this.#atMs);
    this.#longestCpuMs = Math.max(this.#longestCpuMs, cpuMs - this.#cpuMs);
    [this.#atMs, this.#cpuMs] = [atMs, cpuMs];
  }
}

/** Of this thread, which runs the event loop. */
function threadCpuMs(): number {
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, time);
  return Number(time[0]) * 1e3 + Number(time[1]) / 1e6;
}

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

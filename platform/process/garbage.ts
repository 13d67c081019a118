/**
 * V8's collector, where the process has it at hand (`--expose-gc`, with which
 * the program is shipped). Elsewhere these do nothing, and memory comes back
 * when V8 thinks that it is time.
 *
 * @module
 */

interface Options {
  readonly type: "major" | "minor";
  readonly flavor?: "last-resort";
}

const collect = (globalThis as { gc?: (options: Options) => void }).gc;

/** Collects what was made lately and is not used any more: some 0.3 ms. */
export function collectNursery(): void {
  collect?.({ type: "minor" });
}

/** Collects everything and returns the pages: 40 ms for a heap of 80 MB. */
export function collectEverything(): void {
  collect?.({ type: "major", flavor: "last-resort" });
}

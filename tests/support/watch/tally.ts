// deno-lint-ignore-file no-console -- what it is for.
/**
 * Counts and prints results, a line each, and the total at the end in the form
 * that `.ci/run` adds up: `N passed, N failed, N skipped`.
 *
 * @module
 */

export class Tally {
  passed = 0;
  failed = 0;
  skipped = 0;
  #print: (line: string) => void;

  /** @param print Where the lines go; standard output when left out. */
  constructor(print: (line: string) => void = console.log) {
    this.#print = print;
  }

  /** Runs one case and says how it went. */
  async run(name: string, action: () => Promise<void>): Promise<void> {
    const begin = performance.now();
    try {
      await action();
    } catch (error) {
      this.fail(name, error);
      return;
    }
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    this.pass(`${name} (${seconds} s)`);
  }

  pass(name: string): void {
    this.passed++;
    this.#print(`PASS ${name}`);
  }

  fail(name: string, error: unknown): void {
    this.failed++;
    const reason = error instanceof Error ? error.message : String(error);
    this.#print(`FAIL ${name}\n     ${reason.replaceAll("\n", "\n     ")}`);
  }

  /** A skip without a reason is a failure that nobody sees. */
  skip(name: string, reason: string): void {
    this.skipped++;
    this.#print(`SKIP ${name} (${reason})`);
  }

  /** Prints a line that counts for nothing. */
  note(line: string): void {
    this.#print(line);
  }

  add(other: { passed: number; failed: number; skipped: number }): void {
    this.passed += other.passed;
    this.failed += other.failed;
    this.skipped += other.skipped;
  }

  /** Prints the total. @returns The exit status. */
  end(): number {
    this.#print(
      `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`,
    );
    return this.failed === 0 ? 0 : 1;
  }
}

/** The last total in what a program printed, or `undefined`. */
export function readTotal(
  output: string,
): { passed: number; failed: number; skipped: number } | undefined {
  const totals = [
    ...output.matchAll(/^(\d+) passed, (\d+) failed, (\d+) skipped$/gm),
  ];
  const last = totals.at(-1);
  if (last === undefined) return undefined;
  const [passed, failed, skipped] = last.slice(1).map(Number);
  return { passed: passed!, failed: failed!, skipped: skipped! };
}

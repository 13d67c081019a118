/**
 * What `deno test` says, boiled down while it says it: how far it is, what
 * failed, and what of it is worth reading in the end.
 *
 * @module
 */

import { withoutPasses } from "./tests.ts";

/** Of several files at a time each line names its own. */
const RESULT =
  /^(?:(\S+_test\.ts) => )?(\S.*) \.\.\. (ok|FAILED|ignored|cancelled) \([^)]*\)(?: \([^)]*\))?$/;
/** Of one at a time this line does. */
const FILE = /^running \d+ tests? from (.+)$/;
const UNCAUGHT = /^Uncaught error from (.+) FAILED$/;

/** What begins the part that shows the failures. */
const ERRORS = /^ ERRORS *$/m;

/** How a run of `deno test` ended. */
export interface EndedRun {
  readonly ok: boolean;
  readonly output: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** See the module description. Of output without colours. */
export class TestProgress {
  #file = "";
  #passed = 0;
  #failed = 0;

  /** How far it is, in half a line. */
  get status(): string {
    const failed = this.#failed === 0 ? "" : `, ${this.#failed} FAILED`;
    return `${this.#passed} tests passed${failed}`;
  }

  /** @returns What is to be printed at once: the name of what failed. */
  take(line: string): string | undefined {
    const file = FILE.exec(line);
    if (file !== null) this.#file = file[1]!;
    const uncaught = UNCAUGHT.exec(line);
    if (uncaught !== null) return this.#fail("uncaught error", uncaught[1]!);
    const [, of, name, result] = RESULT.exec(line) ?? [];
    if (result === "ok") this.#passed++;
    return result === "FAILED"
      ? this.#fail(name!, of ?? this.#file)
      : undefined;
  }

  /**
   * @param seconds How long it took.
   * @param runs What it was made of.
   * @returns What is left to be said, its last line in the form that `.ci/run`
   *   adds up.
   */
  end(seconds: number, runs: readonly EndedRun[]): string {
    const sum = (of: (run: EndedRun) => number) =>
      runs.reduce((total, run) => total + of(run), 0);
    return [
      ...runs.filter(({ ok }) => !ok)
        .flatMap(({ output }) => [failuresIn(output), ""]),
      `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`,
      `${sum((run) => run.passed)} passed, ${
        sum((run) => run.failed)
      } failed, ` +
      `${sum((run) => run.skipped)} skipped`,
    ].join("\n");
  }

  #fail(name: string, file: string): string {
    this.#failed++;
    return `FAIL ${name} (${file.replace(/^\.\//, "")})`;
  }
}

/** In full; of a run that broke down all but what passed. */
function failuresIn(output: string): string {
  const begin = output.search(ERRORS);
  if (begin >= 0) return output.slice(begin).trimEnd();
  return withoutPasses(output).split("\n")
    .filter((line) => !FILE.test(line))
    .join("\n").trim();
}

/**
 * What `deno test` says, boiled down while it says it: how far it is, what
 * failed, and what of it is worth reading in the end.
 *
 * @module
 */

import { readTestTotal, withoutPasses } from "./tests.ts";

/** Of several files at a time each line names its own. */
const RESULT =
  /^(?:(\S+_test\.ts) => )?(\S.*) \.\.\. (ok|FAILED|ignored|cancelled) \([^)]*\)$/;
/** Of one at a time this line does. */
const FILE = /^running \d+ tests? from (.+)$/;
const CHECKED = /^Check /;
const UNCAUGHT = /^Uncaught error from (.+) FAILED$/;

/** What begins the part that shows the failures. */
const ERRORS = /^ ERRORS *$/m;

/** See the module description. Of output without colours. */
export class TestProgress {
  #output = "";
  #checked = 0;
  readonly #files = new Set<string>();
  #file = "";
  #passed = 0;
  #failed = 0;
  readonly #wanted: number | undefined;

  /** @param wanted How many files there are, if that is known. */
  constructor(wanted?: number) {
    this.#wanted = wanted;
  }

  /** How far it is, in half a line. */
  get status(): string {
    const of = this.#wanted === undefined ? "" : ` of ${this.#wanted}`;
    if (this.#files.size === 0) {
      return `types are checked, of ${this.#checked}${of} files`;
    }
    const failed = this.#failed === 0 ? "" : `, ${this.#failed} FAILED`;
    return `${this.#files.size}${of} files, ${this.#passed} tests passed${failed}`;
  }

  /** All that was said. */
  get output(): string {
    return this.#output;
  }

  /** @returns What is to be printed at once: the name of what failed. */
  take(line: string): string | undefined {
    this.#output += `${line}\n`;
    if (CHECKED.test(line)) this.#checked++;
    const file = FILE.exec(line);
    if (file !== null) this.#begin(file[1]!);
    const uncaught = UNCAUGHT.exec(line);
    if (uncaught !== null) {
      this.#begin(uncaught[1]!);
      return this.#fail("uncaught error");
    }
    const [, of, name, result] = RESULT.exec(line) ?? [];
    if (name === undefined) return undefined;
    if (of !== undefined) this.#begin(of);
    if (result === "ok") this.#passed++;
    return result === "FAILED" ? this.#fail(name) : undefined;
  }

  /**
   * @param seconds How long it took.
   * @param ok What it ended with.
   * @returns What is left to be said, its last line in the form that `.ci/run`
   *   adds up.
   */
  end(seconds: number, ok: boolean): string {
    const total = readTestTotal(this.#output);
    const counted = total ?? { passed: 0, failed: 0, skipped: 0 };
    const { passed, failed, skipped } = counted;
    // It may break down without having counted that.
    const broken = !ok && failed === 0 ? 1 : failed;
    const took = `${Math.floor(seconds / 60)} min ${
      Math.round(seconds % 60)
    } s`;
    return [
      ...ok ? [] : [this.#failures(), ""],
      `${this.#files.size} files in ${took}`,
      `${passed} passed, ${broken} failed, ${skipped} skipped`,
    ].join("\n");
  }

  #begin(file: string): void {
    this.#file = file.replace(/^\.\//, "");
    this.#files.add(this.#file);
  }

  #fail(name: string): string {
    this.#failed++;
    return `FAIL ${name} (${this.#file})`;
  }

  /** In full; of a run that broke down all but what passed. */
  #failures(): string {
    const begin = this.#output.search(ERRORS);
    if (begin >= 0) return this.#output.slice(begin).trimEnd();
    return withoutPasses(this.#output).split("\n")
      .filter((line) => !CHECKED.test(line) && !FILE.test(line))
      .join("\n").trim();
  }
}

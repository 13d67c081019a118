/**
 * One page's lines, run in their order: each is taken, run where the page says
 * (or means), and counted.
 *
 * @module
 */

import type { Child } from "../../tests/support/program/child.ts";
import type { DocsStage } from "./docs_stage.ts";
import type { Machine, Ran, RunOptions } from "./machine.ts";
import type { CommandLine } from "./page_lines.ts";

/** See the module description. */
export class PageRun {
  #next = 0;
  /** The line under way. */
  current: CommandLine | undefined;
  /** Those that did what they say. */
  readonly passed: CommandLine[] = [];

  constructor(
    readonly stage: DocsStage,
    readonly lines: readonly CommandLine[],
  ) {}

  get left(): readonly CommandLine[] {
    return this.lines.slice(this.#next);
  }

  /** The page's next line runs to its end. @param exit What it ends with. */
  async run(
    machine: Machine,
    line: string,
    { exit = 0, says = /(?:)/, ...options }: RunOptions & {
      readonly exit?: number;
      readonly says?: RegExp;
    } = {},
  ): Promise<Ran & { readonly answer: string }> {
    const { text, answer } = this.#take(line, options);
    const ran = await machine.run(text, options.env);
    const { code, said } = ran;
    if (code !== exit || !says.test(said)) {
      throw new Error(
        `exit ${code}, wanted ${exit} and ${says}; it said:\n${said}`,
      );
    }
    if (/TUN907|run again with the --allow/.test(said)) throw new Error(said);
    this.done();
    return { ...ran, answer };
  }

  /** The page's next line goes on; it has started when it says `until`. */
  async start(
    machine: Machine,
    line: string,
    until: RegExp,
    options: RunOptions = {},
  ): Promise<Child> {
    const { text } = this.#take(line, options);
    const child = await machine.start(text, until, options.env);
    this.done();
    return child;
  }

  /** The line under way has done what it says. */
  done(): void {
    if (this.current !== undefined) this.passed.push(this.current);
    this.current = undefined;
  }

  /** The page's next line, to be run by the caller, who calls `done`. */
  take(line: string, options: RunOptions = {}): string {
    return this.#take(line, options).text;
  }

  #take(line: string, { with: placeholders = {} }: RunOptions): CommandLine {
    const next = this.lines[this.#next++];
    if (next === undefined) throw new Error(`There is no line "${line}" left`);
    this.current = next;
    const squeezed = next.text.replaceAll(/[ \t]+/g, " ");
    if (!squeezed.startsWith(`tunnel ${line}`)) {
      throw new Error(`The next line is not "tunnel ${line}": ${next.text}`);
    }
    let { text } = next;
    for (const [placeholder, value] of Object.entries(placeholders)) {
      if (!text.includes(placeholder)) throw new Error(`No ${placeholder}`);
      text = text.replace(placeholder, () => value);
    }
    return { ...next, text };
  }
}

/** Runs a page. */
export type PageScript = (page: PageRun) => Promise<void>;

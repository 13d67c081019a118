/**
 * A program of a run that can be killed and started again where it was.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import {
  childrenOf,
  type Holding,
  holdingOf,
} from "../../tests/support/program/processes.ts";

/** What a program is. */
export interface ProgramConfig {
  readonly name: string;
  readonly machine: string;
  /** Whole, with what leads to its machine. */
  readonly command: readonly string[];
  readonly logFile: string;
  /** Answers 200 when it is ready; absent: what it prints then. */
  readonly readyUrl?: string;
  readonly readyLine?: RegExp;
}

/** See the module description. */
export class Program {
  readonly name: string;
  readonly machine: string;
  #child: Child | undefined;
  /** How often it was started: what it holds is compared within one life. */
  lives = 0;

  constructor(private readonly config: ProgramConfig) {
    this.name = config.name;
    this.machine = config.machine;
  }

  get pid(): number {
    return this.#running.pid;
  }

  get logFile(): string {
    return this.config.logFile;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && !this.#child.hasEnded;
  }

  /** Starts it, unless it runs; nobody waits until it is ready. */
  launch(): void {
    if (this.isRunning) return;
    const { name, command, logFile } = this.config;
    this.#child = new Child({ name, command, logFile });
    this.lives++;
  }

  async untilReady(): Promise<void> {
    const { readyUrl, readyLine } = this.config;
    if (readyUrl !== undefined) await this.#running.untilReady(readyUrl);
    if (readyLine !== undefined) await this.#running.untilPrinted(readyLine);
  }

  async start(): Promise<void> {
    this.launch();
    await this.untilReady();
  }

  signal(signal: Deno.Signal): void {
    this.#running.signal(signal);
  }

  /** Ends it, and waits for its end. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    await this.#child?.stop(signal);
  }

  get children(): readonly number[] {
    return childrenOf(this.pid);
  }

  held(): Holding {
    return holdingOf(this.pid);
  }

  get #running(): Child {
    if (this.#child === undefined) throw new TypeError(`${this.name}: not run`);
    return this.#child;
  }
}

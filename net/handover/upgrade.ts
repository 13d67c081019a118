/**
 * A new program takes the place of this process: this process starts its
 * successor with its own arguments and environment, and learns the outcome.
 *
 * This process starts it, and not the command that requests it, so that it has
 * the same surroundings: the service manager's unit, the limits, the log. Until
 * it has taken over, its stderr comes through this process, which keeps the
 * last lines in case it fails.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { openLibc } from "../libc/libc.ts";
import { type Pollable, Ready, sharedPoller } from "../poll/poller.ts";
import {
  type ProcessEnd,
  type ProcessStart,
  SpawnedProcess,
} from "./spawned_process.ts";

/** The default time limit for the new program. */
export const UPGRADE_MS = 60_000;

/** The longest time limit, whatever is requested. */
export const UPGRADE_MS_MAX = 600_000;

/** How often it is looked whether it has ended. */
const LOOK_MS = 50;

/** Limit on the kept output. */
export const LAST_WORDS_BYTES_MAX = 2_000;

/** The outcome. */
export type UpgradeOutcome =
  | { readonly kind: "done" }
  | {
    readonly kind: "failed";
    /** Such as `it ended with exit code 1`. */
    readonly reason: string;
    /** The last lines that it wrote to stderr. */
    readonly words: string;
  };

/** What an upgrade needs. */
export interface UpgradeOptions extends Tools {
  readonly start: ProcessStart;
  readonly timeoutMs: number;
  /** What the new program writes to stderr until it has taken over. */
  readonly forward: (bytes: Uint8Array) => void;
  readonly over: (outcome: UpgradeOutcome) => void;
}

export class Upgrade {
  readonly #output: Output;
  readonly #deadline: Timer;
  #look: Timer | undefined;
  #isOver = false;

  private constructor(
    private readonly options: UpgradeOptions,
    private readonly process: SpawnedProcess,
  ) {
    const { timers, timeoutMs, forward } = options;
    this.#output = new Output(process.stderr, forward);
    this.#deadline = timers.after(
      Math.min(timeoutMs, UPGRADE_MS_MAX),
      () => this.#late(),
    );
    this.#wait();
  }

  /**
   * @returns `undefined` where no program can be started.
   * @throws A system error with its `code`.
   */
  static begin(options: UpgradeOptions): Upgrade | undefined {
    const process = SpawnedProcess.start(options.start);
    if (process === undefined) return undefined;
    options.log.info(
      `upgrade: starts ${options.start.file} as process ${process.pid}`,
    );
    return new Upgrade(options, process);
  }

  get pid(): number {
    return this.process.pid;
  }

  /** It has taken over, and its words go where ours go. */
  succeeded(): void {
    this.#finish({ kind: "done" });
  }

  #wait(): void {
    this.#look = this.options.timers.after(LOOK_MS, () => {
      const end = this.process.end();
      if (end === undefined) return this.#wait();
      this.process.kill();
      this.#failed(endText(end));
    });
  }

  #late(): void {
    this.process.kill();
    const seconds = Math.round(this.options.timeoutMs / 1000);
    this.#failed(`it was not ready within ${seconds} s`);
    this.#reap();
  }

  /**
   * A killed process stays in the process list until its parent waits for it.
   */
  #reap(): void {
    this.options.timers.after(LOOK_MS, () => {
      if (this.process.end() === undefined) this.#reap();
    });
  }

  #failed(reason: string): void {
    if (this.#isOver) return;
    const words = this.#output.end();
    this.options.log.warn(`upgrade: ${reason}; this process goes on`, {
      code: "TUN913",
    });
    this.#finish({ kind: "failed", reason, words });
  }

  #finish(outcome: UpgradeOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline.cancel();
    this.#look?.cancel();
    this.options.over(outcome);
  }
}

function endText(end: ProcessEnd): string {
  return end.kind === "exit"
    ? `it ended with exit code ${end.code}`
    : `signal ${end.number} ended it`;
}

const MSG_DONTWAIT = 0x40;

/** What a process writes, as it comes. */
class Output implements Pollable {
  readonly #buffer = new Uint8Array(4_096);
  #tail: Uint8Array = new Uint8Array();
  #isOpen = true;

  constructor(
    private readonly descriptor: number,
    private readonly forward: (bytes: Uint8Array) => void,
  ) {
    sharedPoller()?.add(descriptor, Ready.READ | Ready.PEER_END, this);
  }

  onReady(): void {
    const library = openLibc()!;
    while (this.#isOpen) {
      const count = library.recv(
        this.descriptor,
        this.#buffer,
        BigInt(this.#buffer.length),
        MSG_DONTWAIT,
      );
      if (count < 0) return;
      if (count === 0) return this.#close();
      this.#took(this.#buffer.slice(0, count));
    }
  }

  onFault(): void {
    this.#close();
  }

  /** @returns The last lines of it. */
  end(): string {
    this.onReady();
    this.#close();
    return new TextDecoder().decode(this.#tail).trim();
  }

  #took(bytes: Uint8Array): void {
    this.forward(bytes);
    this.#tail = joinedBytes([this.#tail, bytes]).slice(-LAST_WORDS_BYTES_MAX);
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    void sharedPoller()?.close(this.descriptor);
  }
}

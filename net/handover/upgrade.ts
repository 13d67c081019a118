/**
 * A new program takes the place of this process: this process starts it as its
 * own successor, with its own words and environment, and hears what becomes of it.
 *
 * It is started here, and not by whoever wants it, so that it is where this
 * process is: its service manager's unit, its limits, its log. Until it has taken
 * over, what it writes to stderr comes through this process, which keeps the end of
 * it: the last words of one that fails.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { openLibc } from "../libc/libc.ts";
import { type Pollable, Ready, sharedPoller } from "../poll/poller.ts";
import {
  type ProcessEnd,
  type ProcessStart,
  SpawnedProcess,
} from "./spawned_process.ts";

/** How long the new program may take when nobody says so. */
export const UPGRADE_MS = 60_000;

/** Nobody waits longer, whatever is asked. */
export const UPGRADE_MS_MAX = 600_000;

/** How often it is looked whether it has ended. */
const LOOK_MS = 50;

/** What is kept of what it writes. */
export const LAST_WORDS_BYTES_MAX = 2_000;

/** What became of it. */
export type UpgradeOutcome =
  | { readonly kind: "done" }
  | {
    readonly kind: "failed";
    /** Such as `it ended with exit code 1`. */
    readonly reason: string;
    /** The end of what it has written to stderr. */
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

  /** Who was killed stays in the list of processes until its parent has looked. */
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
    const all = new Uint8Array(this.#tail.length + bytes.length);
    all.set(this.#tail);
    all.set(bytes, this.#tail.length);
    this.#tail = all.slice(-LAST_WORDS_BYTES_MAX);
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    void sharedPoller()?.close(this.descriptor);
  }
}

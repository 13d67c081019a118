/**
 * How a long-running program handles unforeseen errors: it logs each once with
 * its stack, counts repeats, and goes on.
 *
 * Below the guards (`internal_errors.ts`) it is a safety net: an error that no
 * guard caught would end the process, and with it all connections.
 *
 * @module
 */

import { clipped } from "../../proto/peer/quoted.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";
import {
  internalErrorCounts,
  onInternalErrors,
  reportInternalError,
  type Where,
} from "../errors/internal_errors.ts";
import type { Log } from "./log.ts";
import type { MetricRegistry } from "../metrics/metrics.ts";
import { systemTimers } from "../time/system_timers.ts";

/** Limit on distinct stacks; others are only logged as such. */
export const STACKS_MAX = 100;

/** How long the same error is only counted, then logged as a number. */
export const REPEATS_MS = 60_000;

/** An error's own words may be a peer's. */
const MESSAGE_LENGTH_MAX = 300;
const STACK_LENGTH_MAX = 4_000;

/** Logs each error once, and how often it came again. */
export class InternalErrorLog implements Disposable {
  /** By {@linkcode stackOf}; how often it came since its last line. */
  readonly #repeats = new Map<string, Repeats>();
  #timer: Timer | undefined;

  constructor(
    private readonly log: Pick<Log, "error">,
    private readonly timers: Timers,
  ) {}

  add(where: Where, error: unknown): void {
    const stack = stackOf(error);
    const key = `${where} ${stack}`;
    const known = this.#repeats.get(key);
    if (known !== undefined) {
      known.count++;
      return this.#tellLater();
    }
    const message = `internal error, please report it: ${messageOf(error)}`;
    this.log.error(message, { code: "TUN907", where, stack });
    setNewest(this.#repeats, key, { message, where, count: 0 }, STACKS_MAX);
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#report();
  }

  #tellLater(): void {
    this.#timer ??= this.timers.after(REPEATS_MS, () => {
      this.#timer = undefined;
      this.#report();
    });
  }

  #report(): void {
    for (const repeats of this.#repeats.values()) {
      const { message, where, count } = repeats;
      if (count === 0) continue;
      repeats.count = 0;
      this.log.error(`${message} (the same, ${count} more)`, {
        code: "TUN907",
        where,
      });
    }
  }
}

/** The same error, come again. */
interface Repeats {
  readonly message: string;
  readonly where: Where;
  count: number;
}

/** The source of uncaught errors: the global object. */
export type ErrorSource = Pick<
  typeof globalThis,
  "addEventListener" | "removeEventListener"
>;

/**
 * Keeps the process alive through every thrown error, until it is disposed of.
 *
 * @param source For tests.
 */
export function surviveInternalErrors(
  log: Pick<Log, "error">,
  timers: Timers = systemTimers,
  source: ErrorSource = globalThis,
): Disposable {
  const errors = new InternalErrorLog(log, timers);
  const stop = onInternalErrors((where, error) => errors.add(where, error));
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    reportInternalError("unguarded", event.error);
  };
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    reportInternalError("unguarded", event.reason);
  };
  source.addEventListener("error", onError);
  source.addEventListener("unhandledrejection", onRejection);
  return {
    [Symbol.dispose]() {
      source.removeEventListener("error", onError);
      source.removeEventListener("unhandledrejection", onRejection);
      stop();
      errors[Symbol.dispose]();
    },
  };
}

/** @param program Such as `tunnel_server`. */
export function registerInternalErrors(
  registry: MetricRegistry,
  program: string,
): void {
  registry.computedLabelled(
    "counter",
    `${program}_internal_errors_total`,
    "Unexpected errors in our own code, by activity; each ended one " +
      "connection, stream, request or task.",
    ["where"],
    internalErrorCounts,
  );
}

function messageOf(error: unknown): string {
  const text = error instanceof Error
    ? `${error.name}: ${error.message}`
    : `a value that is no error was thrown: ${textOf(error)}`;
  return clipped(text, MESSAGE_LENGTH_MAX);
}

/**
 * The stack in one line. The message is left out, because it may differ for
 * each peer.
 */
function stackOf(error: unknown): string {
  const stack = error instanceof Error ? error.stack ?? "" : "";
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const line = frames.map((frame) => frame.trim()).join(" ");
  return clipped(line || messageOf(error), STACK_LENGTH_MAX);
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}

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
import type { Timers } from "../../proto/sync/clock.ts";
import {
  internalErrorCounts,
  onInternalErrors,
  reportInternalError,
} from "../errors/internal_errors.ts";
import type { Log } from "./log.ts";
import { RepeatedLines } from "./repeated_lines.ts";
import type { MetricRegistry } from "../metrics/metrics.ts";
import { systemTimers } from "../time/system_timers.ts";

/** An error's own words may be a peer's. */
const MESSAGE_LENGTH_MAX = 300;
const STACK_LENGTH_MAX = 4_000;

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
  const repeated = new RepeatedLines(timers);
  const stop = onInternalErrors((where, error) => {
    const stack = stackOf(error);
    const key = `${where} ${stack}`;
    const message = `internal error, please report it: ${messageOf(error)}`;
    const fields = { code: "TUN907", where } as const;
    repeated.add(
      key,
      key,
      (note) =>
        log.error(message + note, note === "" ? { ...fields, stack } : fields),
    );
  });
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
      repeated.flush();
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

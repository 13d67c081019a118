/**
 * Runs a program until it ends or is stopped: the first signal asks for an
 * orderly end, the second one ends it at once. SIGHUP reads files again.
 * Meanwhile unused memory is returned, and vanished peers are detected.
 *
 * @module
 */

import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import { MemoryRelief } from "../../net/libc/memory_relief.ts";
import { DeadPeers } from "../../net/libc/dead_peers.ts";
import { smallLimitWarning } from "../../net/libc/descriptors.ts";
import { localSocketsInUse } from "../../net/poll/local_sockets.ts";
import { sharedPoller } from "../../net/poll/poller.ts";
import type { Running } from "../../net/program/program.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { ENDS, onSignals, type SignalSource } from "./signals.ts";

/** After this time, a log line says how to end at once. */
const HINT_MS = 500;

/** Settles as `running.finished` does. */
export async function untilStopped(
  running: Running,
  signals: SignalSource = Deno,
  log: RunLog = SILENT,
  timers: Timers = systemTimers,
): Promise<void> {
  let asked = false;
  let hint: Timer | undefined;
  const onSignal = (signal: Deno.Signal) => {
    if (asked) return running.stop("a second signal came");
    asked = true;
    hint = timers.after(HINT_MS, () => log.info(hintFor(signal)));
    const stop = () => running.stop("it could not end in order");
    guarded("task", () => running.shutdown(signal), stop);
  };
  using _ends = onSignals(ENDS, onSignal, signals);
  const onReload = () => guarded("task", () => running.reload());
  using _reload = onSignals(["SIGHUP"], onReload, signals);
  const watches = [
    new MemoryRelief(systemTimers),
    new DeadPeers(systemTimers),
  ];
  const release = sharedPoller()?.hold(systemTimers);
  log.detail(localSocketsInUse());
  const warning = smallLimitWarning();
  if (warning !== undefined) log.warn(warning, { code: "TUN513" });
  try {
    await running.finished;
  } finally {
    hint?.cancel();
    for (const watch of watches) watch.stop();
    release?.();
  }
}

function hintFor(signal: Deno.Signal): string {
  const again = signal === "SIGINT" ? "press Ctrl-C" : `send ${signal}`;
  return `ends when what runs is over; ${again} again to stop now`;
}

type RunLog = Pick<Log, "detail" | "info" | "warn">;

const SILENT: RunLog = { detail() {}, info() {}, warn() {} };

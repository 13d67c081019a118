/**
 * Runs something until it ends or the user has had enough: the first signal
 * asks it to end in order, the second one ends it. SIGHUP reads files again.
 * Meanwhile memory that is not needed any more is given back, and peers that
 * vanished are found out about.
 *
 * @module
 */

import { MemoryRelief } from "../host/process/memory_relief.ts";
import { DeadPeers } from "../host/sockets/libc/dead_peers.ts";
import { localSocketsInUse } from "../host/sockets/local_sockets.ts";
import { sharedPoller } from "../host/sockets/polled/poller.ts";
import { systemTimers } from "../host/process/system_timers.ts";

/** A server or an agent that is up. */
export interface Running {
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /** No more callers; ends when idle or at its timeout. */
  shutdown(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads its files again; what runs is not disturbed. */
  reload(): void;
}

/** Where signals come from; `Deno` in earnest. */
export interface SignalSource {
  addSignalListener(signal: Deno.Signal, listener: () => void): void;
  removeSignalListener(signal: Deno.Signal, listener: () => void): void;
}

const SIGNALS: readonly Deno.Signal[] = ["SIGTERM", "SIGINT"];

/**
 * Settles as `running.finished` does.
 *
 * @param say Hears a sentence about the machine, for the log.
 */
export async function untilStopped(
  running: Running,
  signals: SignalSource = Deno,
  say: (sentence: string) => void = () => {},
): Promise<void> {
  let asked = false;
  const onSignal = () => {
    if (asked) return running.stop("a second signal came");
    asked = true;
    running.shutdown();
  };
  const onReload = () => running.reload();
  for (const signal of SIGNALS) signals.addSignalListener(signal, onSignal);
  signals.addSignalListener("SIGHUP", onReload);
  const watches = [
    new MemoryRelief(systemTimers),
    new DeadPeers(systemTimers),
  ];
  const release = sharedPoller()?.hold(systemTimers);
  say(localSocketsInUse());
  try {
    await running.finished;
  } finally {
    for (const watch of watches) watch.stop();
    release?.();
    signals.removeSignalListener("SIGHUP", onReload);
    for (const signal of SIGNALS) {
      signals.removeSignalListener(signal, onSignal);
    }
  }
}

/**
 * SIGTERM and SIGINT: the first asks to finish, the second insists.
 *
 * @module
 */

/** What is done about a request to stop. */
export interface StopEvents {
  /** Finish what runs, take nothing new, then exit. */
  onFirst(signal: Deno.Signal): void;
  /** Exit now. */
  onSecond(signal: Deno.Signal): void;
}

const STOP_SIGNALS: readonly Deno.Signal[] = ["SIGTERM", "SIGINT"];

/**
 * Listens for both signals, which count together.
 *
 * Call this at the start of a process, before descriptors can run out: the
 * platform panics when it first meets signals without one.
 *
 * @returns How to stop listening.
 */
export function onStopSignals(events: StopEvents): () => void {
  let isFirst = true;
  const listeners = STOP_SIGNALS.map((signal) => {
    const listener = () => {
      const act = isFirst ? events.onFirst : events.onSecond;
      isFirst = false;
      act.call(events, signal);
    };
    Deno.addSignalListener(signal, listener);
    return () => Deno.removeSignalListener(signal, listener);
  });
  return () => listeners.forEach((remove) => remove());
}

/** Calls `reload` at each SIGHUP; @returns how to stop that. */
export function onReloadSignal(reload: () => void): () => void {
  Deno.addSignalListener("SIGHUP", reload);
  return () => Deno.removeSignalListener("SIGHUP", reload);
}

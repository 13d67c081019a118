/**
 * Signals that a command hears while it works.
 *
 * @module
 */

/** The source of signals; `Deno` outside tests. */
export type SignalSource = Pick<
  typeof Deno,
  "addSignalListener" | "removeSignalListener"
>;

/** How people and services end a command. */
export const ENDS: readonly Deno.Signal[] = ["SIGINT", "SIGTERM"];

/** @returns Disposed of when they are not to be heard any more. */
export function onSignals(
  signals: readonly Deno.Signal[],
  listener: (signal: Deno.Signal) => void,
  source: SignalSource = Deno,
): Disposable {
  const heard = signals.map((signal) =>
    [signal, () => listener(signal)] as const
  );
  for (const [signal, hear] of heard) source.addSignalListener(signal, hear);
  return {
    [Symbol.dispose]() {
      for (const [signal, hear] of heard) {
        source.removeSignalListener(signal, hear);
      }
    },
  };
}

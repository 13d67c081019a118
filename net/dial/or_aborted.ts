/**
 * Waiting no longer than somebody wants what is waited for.
 *
 * @module
 */

/**
 * Waits for what cannot be given up, such as the resolver, no longer than
 * somebody wants it.
 *
 * @param promise What it says too late is nobody's.
 * @throws What it rejects with, or the signal's reason.
 */
export function orAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    promise.then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", onAbort));
  });
}

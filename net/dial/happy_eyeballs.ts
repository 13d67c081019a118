/**
 * Tries several addresses so that a dead one costs a quarter of a second
 * instead of the whole deadline (RFC 8305 §4 and §5).
 *
 * Addresses of both families take turns; each attempt gets a head start, then
 * the next one runs beside it, or at once when the one before has failed. The
 * first to connect wins and the others are given up.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";

/** Head start of an attempt over the next one (RFC 8305 §8). */
export const ATTEMPT_DELAY_MS = 250;

/** Orders addresses so that the families alternate, the first one's first. */
export function interleaveFamilies(addresses: readonly string[]): string[] {
  const isV6 = (address: string) => address.includes(":");
  const first = addresses.filter((one) => isV6(one) === isV6(addresses[0]!));
  const second = addresses.filter((one) => isV6(one) !== isV6(addresses[0]!));
  const ordered: string[] = [];
  for (let index = 0; ordered.length < addresses.length; index++) {
    if (index < first.length) ordered.push(first[index]!);
    if (index < second.length) ordered.push(second[index]!);
  }
  return ordered;
}

/** What {@linkcode connectAny} needs to know about a connection. */
export interface Attempts<Connection> {
  /** In order of preference, at least one. */
  readonly addresses: readonly string[];
  /** Gives up when `signal` is aborted. */
  connect(address: string, signal: AbortSignal): Promise<Connection>;
  /** Frees a connection that came too late to win. */
  discard(connection: Connection): void;
  readonly timers: Timers;
  /** Gives up everything. */
  readonly signal: AbortSignal;
}

/**
 * @returns The first connection that was made.
 * @throws The error of the first address when all have failed, because that is
 *   the one people asked for; the signal's reason when that came first.
 */
export function connectAny<Connection>(
  attempts: Attempts<Connection>,
): Promise<Connection> {
  const { addresses, signal, timers } = attempts;
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  const others = new AbortController();
  let started = 0;
  let failed = 0;
  let firstError: unknown;
  let isSettled = false;
  let timer = { cancel() {} };

  const settle = (act: () => void) => {
    if (isSettled) return;
    isSettled = true;
    timer.cancel();
    signal.removeEventListener("abort", onAbort);
    act();
    // Only when another attempt runs: the platform makes an exception with a
    // stack each time, which a dial to one address need not pay for.
    if (started - failed > 1) others.abort();
  };
  const onAbort = () => settle(() => reject(signal.reason));
  const startNext = () => {
    timer.cancel();
    const index = started++;
    const address = addresses[index];
    if (isSettled || address === undefined) return;
    timer = timers.after(ATTEMPT_DELAY_MS, startNext);
    attempts.connect(address, others.signal).then((connection) => {
      if (isSettled) attempts.discard(connection);
      else settle(() => resolve(connection));
    }, (error) => {
      if (index === 0) firstError = error;
      if (++failed === addresses.length) settle(() => reject(firstError));
      else startNext();
    });
  };

  if (signal.aborted) onAbort();
  else {
    signal.addEventListener("abort", onAbort);
    startNext();
  }
  return promise;
}

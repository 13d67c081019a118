/**
 * Tries several addresses so that a dead one costs a quarter of a second
 * instead of the whole deadline (RFC 8305 §4 and §5).
 *
 * Addresses of both families take turns; each attempt gets a head start before
 * the next one runs beside it; when an attempt fails, the next begins at once.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import {
  type Attempt,
  type NextDoubt,
  PromisedRace,
} from "../../platform/time/race.ts";

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
  /** At least one, in order of preference. */
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
  return new AddressRace(attempts).run(attempts.signal);
}

class AddressRace<Connection> extends PromisedRace<string, Connection> {
  /** One for all, aborted only while another attempt runs: that costs a stack. */
  readonly #others = new AbortController();
  readonly #pending = { cancel: () => this.#others.abort() };
  #begun = 0;
  #firstError: unknown;

  constructor(private readonly attempts: Attempts<Connection>) {
    super(attempts.timers, ATTEMPT_DELAY_MS);
  }

  protected begin(): void {
    const address = this.attempts.addresses[this.#begun++];
    if (address !== undefined) this.enter(address);
  }

  protected ask(attempt: Attempt<string, Connection>): void {
    attempt.pending = this.#pending;
    const { signal } = this.#others;
    this.follow(attempt, this.attempts.connect(attempt.asked, signal));
  }

  protected override doubt(
    attempt: Attempt<string, Connection>,
  ): NextDoubt {
    // One more in each delay, however many there are.
    if (attempt === this.running.at(-1)) this.begin();
    return "enough";
  }

  protected lost(
    { asked }: Attempt<string, Connection>,
    error: unknown,
  ): void {
    const { addresses } = this.attempts;
    if (asked === addresses[0]) this.#firstError = error;
    this.begin();
    if (this.running.length === 0) this.lose(this.#firstError);
  }

  protected won(_attempt: unknown, connection: Connection): void {
    this.succeed(connection);
  }

  protected discard(connection: Connection): void {
    this.attempts.discard(connection);
  }
}

/**
 * What a fleet of simulated clients measures: when each was in sync, and how
 * long a change took from the first client that received it to the last.
 *
 * @module
 */

import type { ResourceKind } from "../../proto/xds/resource.ts";

/** Changes that are kept apart; of more the oldest are forgotten. */
export const CHANGES_MAX = 1_000;

/** Times of many equal things, milliseconds. */
export interface Times {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** One change, as far as it has come. */
export interface ChangeFigure {
  readonly kind: ResourceKind;
  /** Of the response. */
  readonly version: string;
  /** Clients that received it. */
  readonly clients: number;
  /** From the fleet's start to the first of them. */
  readonly atMs: number;
  /** From the first of them to the last. */
  readonly spreadMs: number;
}

export interface FleetFigures {
  readonly clients: number;
  /** From its start, of each client that was in sync. */
  readonly synced: Times;
  readonly changes: readonly ChangeFigure[];
  /** Over all changes that reached more than one client. */
  readonly spread: Times;
  readonly responses: number;
  readonly refused: number;
  /** Streams on which a server has spoken. */
  readonly streams: number;
}

/** Percentiles by rank; all 0 where there is nothing. */
export function timesOf(samples: readonly number[]): Times {
  const sorted = [...samples].sort((a, b) => a - b);
  const rank = (share: number) => {
    const index = Math.ceil(share * sorted.length) - 1;
    return round(sorted[Math.max(0, index)] ?? 0);
  };
  return {
    count: sorted.length,
    p50Ms: rank(.5),
    p99Ms: rank(.99),
    maxMs: rank(1),
  };
}

/** Which client received which change, and when. */
export class ChangeLog {
  readonly #changes = new Map<
    string,
    { kind: ResourceKind; version: string; clients: number; times: number[] }
  >();

  /** A client received it. */
  received(kind: ResourceKind, version: string, nowMs: number): void {
    const key = `${kind} ${version}`;
    let change = this.#changes.get(key);
    if (change === undefined) {
      change = { kind, version, clients: 0, times: [nowMs, nowMs] };
      this.#changes.set(key, change);
      const [oldest] = this.#changes.keys();
      if (this.#changes.size > CHANGES_MAX) this.#changes.delete(oldest!);
    }
    change.clients++;
    change.times[1] = nowMs;
  }

  /** @param startMs When the fleet was started. */
  figures(startMs: number): readonly ChangeFigure[] {
    return [...this.#changes.values()].map(
      ({ kind, version, clients, times: [first = 0, last = 0] }) => ({
        ...{ kind, version, clients },
        atMs: round(first - startMs),
        spreadMs: round(last - first),
      }),
    );
  }
}

function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

/**
 * What passed through a server in the last hour.
 *
 * @module
 */

/** One moment. */
export interface HistorySample {
  readonly at: string;
  readonly conduits: number;
  /** Bytes a second, of the last seconds. */
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** Dials a second. */
  readonly dialRate: number;
  /** Since the sample before. */
  readonly failedDials: number;
  /** Of the dials since the sample before; absent: there were none. */
  readonly dialP50Ms?: number;
  readonly dialP99Ms?: number;
}

/** `GET /v1/history`, with `?since=` in RFC 3339; the oldest first. */
export interface HistoryAnswer {
  /** Between two samples. */
  readonly stepMs: number;
  readonly samples: readonly HistorySample[];
}

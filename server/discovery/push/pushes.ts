/**
 * Who is told what has changed, and when: changes are gathered (`Debounce`),
 * then what each audience is told is made (`ViewPreparation`), then one stream
 * after the other is told it (`PushQueue`).
 *
 * Reading order: `changed`, `#push`.
 *
 * @module
 */

import {
  guarded,
  INTERNAL_ERROR,
} from "../../../platform/errors/internal_errors.ts";
import type { Catalog } from "../../../catalog/catalog.ts";
import type { Diff } from "../../../catalog/diff.ts";
import { keyOf } from "../../../catalog/model/model.ts";
import { StatusCode } from "../../../proto/grpc/status.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { Audience } from "../generate/audience.ts";
import type { Views } from "../generate/views.ts";
import type { DiscoveryMetrics } from "../status/discovery_metrics.ts";
import type { UnservedLog } from "../status/unserved_log.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import { Debounce } from "./debounce.ts";
import { PushQueue } from "../streams/push_queue.ts";
import { ViewPreparation } from "./view_preparation.ts";

/** What {@linkcode Pushes} needs. */
export interface PushesOptions {
  /** See `DebounceOptions`. */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
  readonly timers: Timers;
  readonly catalog: Catalog;
  readonly views: Views;
  /** Everybody who may have to be told. */
  readonly streams: ReadonlySet<AdsStream>;
  readonly metrics: DiscoveryMetrics;
  readonly unserved: UnservedLog;
}

const UNTOLD = { code: StatusCode.INTERNAL, message: INTERNAL_ERROR };

/** See the module description. */
export class Pushes {
  readonly #options: PushesOptions;
  readonly #debounce: Debounce;
  readonly #preparation: ViewPreparation;
  readonly #queue: PushQueue<AdsStream>;
  /** When the first of the changes came that the next push tells. */
  #changedMs: number | undefined;
  /** The same of the push that goes on, or was last. */
  #toldMs = 0;

  constructor(options: PushesOptions) {
    this.#options = options;
    const { windowMinMs, windowMaxMs, timers, views, metrics } = options;
    this.#preparation = new ViewPreparation(views, timers);
    this.#debounce = new Debounce({
      windowMinMs,
      windowMaxMs,
      timers,
      push: (done) => this.#push(done),
      merged: () => metrics.merged(),
    });
    this.#queue = new PushQueue({
      timers,
      tell: (stream, sinceMs) => {
        metrics.waited(timers.now() - sinceMs);
        guarded(
          "stream",
          () => stream.tell(Math.max(this.#toldMs, stream.sinceMs)),
          // It comes back, and is told everything.
          () => stream.end(UNTOLD),
        );
      },
    });
  }

  /**
   * What clients are told may be something else now.
   *
   * @param diff What the catalog says of it, if it is the catalog that changed.
   */
  changed(diff?: Diff): void {
    this.#changedMs ??= this.#options.timers.now();
    this.#debounce.changed(diff && losersIn(diff));
  }

  /** Tells a stream that is new what there is. */
  add(stream: AdsStream): void {
    this.#preparation.prepare(
      [stream.audience!],
      () => this.#queue.add(stream),
    );
  }

  /** It is gone: nothing is told to it any more. */
  remove(stream: AdsStream): void {
    this.#queue.remove(stream);
  }

  /** Nobody is told anything any more. */
  stop(): void {
    this.#debounce.stop();
    this.#preparation.stop();
    this.#queue.stop();
  }

  #push(done: () => void): void {
    const { timers, views, catalog, streams, metrics, unserved } =
      this.#options;
    const startMs = timers.now();
    this.#toldMs = this.#changedMs ?? startMs;
    this.#changedMs = undefined;
    views.update(catalog.snapshot);
    const { made, lacking } = this.#audiences();
    for (const [audience, waiting] of lacking) {
      this.#preparation.prepare([audience], () => {
        this.#queue.addAll(waiting, () => unserved.look());
      });
    }
    this.#preparation.prepare(
      made,
      () =>
        this.#queue.addAll(streams, () => {
          metrics.pushed(timers.now() - startMs);
          unserved.look();
          done();
        }),
    );
  }

  /** Those that have a view, and who waits for the first one of the others. */
  #audiences(): {
    readonly made: ReadonlySet<Audience>;
    readonly lacking: ReadonlyMap<Audience, readonly AdsStream[]>;
  } {
    const byKey = new Map<string, Audience>();
    const made = new Set<Audience>();
    const lacking = new Map<Audience, AdsStream[]>();
    for (const stream of this.#options.streams) {
      if (stream.audience === undefined) continue;
      const audience = byKey.get(stream.audience.key) ?? stream.audience;
      byKey.set(audience.key, audience);
      const waiting = lacking.get(audience);
      if (waiting !== undefined) waiting.push(stream);
      else if (made.has(audience)) continue;
      else if (this.#options.views.lastViewOf(audience) !== undefined) {
        made.add(audience);
      } else lacking.set(audience, [stream]);
    }
    return { made, lacking };
  }
}

/** Services of which clients may still use what is not there any more. */
function* losersIn({ services, endpoints }: Diff): Iterable<string> {
  for (const service of services.removed) yield keyOf(service);
  for (const { service, removed, changed } of endpoints) {
    const isLost = removed.length > 0 ||
      changed.some(({ before, after }) =>
        before.state === "ready" && after.state !== "ready"
      );
    if (isLost) yield service;
  }
}

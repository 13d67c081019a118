/**
 * Discovery: tells the catalog to whoever subscribes, each in its own form.
 *
 * The catalog says that something changed; the debounce says when that is told;
 * views are what each audience is told; the queue says who is next; a stream
 * knows what its client has, and asks for nothing but its audience's view.
 *
 * Nothing is told before every source has said all it has: a client that was
 * told less would believe that the rest is gone. A source that is lost later
 * leaves everything as it was.
 *
 * Reading order: the constructor, `start`, `#onChange`, `#push`.
 *
 * @module
 */

import { Catalog } from "../../catalog/catalog.ts";
import { registerCatalogMetrics } from "../../catalog/catalog_metrics.ts";
import type { Diff } from "../../catalog/diff.ts";
import { keyOf } from "../../catalog/model.ts";
import type { Source } from "../../catalog/source.ts";
import type { Routes } from "../../host/http_endpoints.ts";
import type { Log } from "../../host/log.ts";
import type { MetricRegistry } from "../../host/metrics.ts";
import type { MethodHandler, ServerCall } from "../../proto/grpc/call.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { RequestDecoder } from "../../proto/xds/request_decoder.ts";
import {
  type Admit,
  admitSubscriber,
  assertSomebody,
  peerOf,
} from "./access/admission.ts";
import { AudienceUse } from "./access/audience_use.ts";
import { Shares } from "./access/shares.ts";
import { WaitingStrangers } from "./access/strangers.ts";
import type { Arrival } from "./access/subscriber.ts";
import {
  type Audience,
  audienceOf,
  type Visibility,
} from "./generate/audience.ts";
import type { Generate, Unserved } from "./generate/service_resources.ts";
import { warmUp } from "./generate/warm_up.ts";
import { Views } from "./generate/views.ts";
import type { DiscoveryServerOptions } from "./options.ts";
import { Debounce } from "./push/debounce.ts";
import { PushQueue } from "./push/push_queue.ts";
import { ViewPreparation } from "./push/view_preparation.ts";
import { debugRoutes } from "./status/debug_endpoints.ts";
import { DiscoveryMetrics } from "./status/discovery_metrics.ts";
import { UnservedLog } from "./status/unserved_log.ts";
import { adsMethods, type StreamForm } from "../../proto/xds/ads_methods.ts";
import type { AdsHost } from "./streams/ads_host.ts";
import { AdsStream } from "./streams/ads_stream.ts";
import type { View } from "./view.ts";

/** Streams at once, of all clients together; an idle one costs some 20 KB. */
export const STREAMS_MAX = 20_000;

/** How often streams are looked at for what is due without an event. */
export const TICK_MS = 1_000;

/** What discovery takes from the server. */
export interface DiscoveryEnvironment {
  readonly log: Log;
  readonly timers: Timers;
  readonly metrics: MetricRegistry;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** `generateService`, unless a test wants to see to it. */
  readonly generate: Generate;
  /** Sources besides those of the options; asked last. */
  readonly sources: readonly Source[];
  /** Whether somebody may be the node that it says. */
  readonly admit: Admit;
  /** The services that a node may know of; empty: nobody's node. */
  visibleTo(node: string): Visibility;
}

/** A subscriber as far as it is like an agent's link: known, and ended. */
export interface SubscriberLink {
  readonly peer: LinkPeer;
  close(reason: string): void;
}

/** See the module description. */
export class Discovery {
  readonly catalog: Catalog;
  readonly views: Views;
  readonly #environment: DiscoveryEnvironment;
  readonly #metrics: DiscoveryMetrics;
  readonly #unserved: UnservedLog;
  readonly #preparation: ViewPreparation;
  readonly #debounce: Debounce;
  readonly #queue: PushQueue<AdsStream>;
  readonly #host: AdsHost;
  readonly #streams = new Set<AdsStream>();
  readonly #shares: Shares;
  readonly #strangers = new WaitingStrangers<AdsStream>();
  readonly #audienceUse: AudienceUse;
  /** When the first of the changes came that the next push tells. */
  #changedMs: number | undefined;
  /** The same of the push that goes on, or was last. */
  #toldMs = 0;
  /** In front of all nonces: not what they were before a restart. */
  readonly #epoch: string;
  #state: "starting" | "serving" | "draining" = "starting";
  #streamCount = 0;
  #timer: Timer | undefined;
  #unfollow: () => void = () => {};

  constructor(
    options: DiscoveryServerOptions,
    environment: DiscoveryEnvironment,
  ) {
    const { log, timers, metrics, random, sources } = environment;
    this.#environment = environment;
    this.#epoch = Math.floor(random() * 36 ** 5).toString(36);
    this.catalog = new Catalog({
      sources: [...options.sources, ...sources],
      log,
      timers,
      random,
    });
    registerCatalogMetrics(metrics, this.catalog);
    this.views = new Views(environment.generate);
    this.#audienceUse = new AudienceUse(this.views);
    this.#shares = new Shares(timers);
    const { views } = this;
    this.#unserved = new UnservedLog({
      get audiences() {
        return views.audiences;
      },
      unservedTo: (audience) => views.lastUnservedTo(audience),
    }, log);
    this.#preparation = new ViewPreparation(this.views, timers);
    this.#metrics = new DiscoveryMetrics(metrics, log, this);
    this.#debounce = new Debounce({
      windowMinMs: options.windowMinMs,
      windowMaxMs: options.windowMaxMs,
      timers,
      push: (done) => this.#push(done),
      merged: () => this.#metrics.merged(),
    });
    this.#queue = new PushQueue({
      timers,
      tell: (stream, sinceMs) => {
        this.#metrics.waited(timers.now() - sinceMs);
        stream.tell(Math.max(this.#toldMs, stream.sinceMs));
      },
    });
    this.#host = this.#createHost();
  }

  /** All streams there are, also those that have not said who they are. */
  get streams(): ReadonlySet<AdsStream> {
    return this.#streams;
  }

  /** Ports of services that some clients may see and cannot be served. */
  get unservedCount(): number {
    return this.#unserved.count;
  }

  /** Whether clients are answered: the sources have said all they have. */
  get isReady(): boolean {
    return this.#state === "serving";
  }

  /**
   * What clients of an audience are told: the last view that was whole.
   *
   * @returns Nothing before there is one.
   */
  viewOf(audience: Audience): View | undefined {
    return this.views.lastViewOf(audience);
  }

  /** What clients of an audience may see and cannot be served. */
  unservedTo(audience: Audience): readonly Unserved[] {
    return this.views.lastUnservedTo(audience);
  }

  /** For the admin port. */
  get routes(): Routes {
    return debugRoutes(this, this.#environment.timers);
  }

  /** Subscribers that had to prove something, to be judged again. */
  get links(): readonly SubscriberLink[] {
    const links: SubscriberLink[] = [];
    for (const stream of this.#streams) {
      const { arrival, subscriber } = stream;
      if (subscriber === undefined || arrival.needsNoProof) continue;
      const peer = peerOf(arrival, subscriber);
      const code = StatusCode.PERMISSION_DENIED;
      const close = (message: string) => stream.end({ code, message });
      links.push({ peer, close });
    }
    return links;
  }

  /** Starts the sources; answers begin when they have synced. */
  start(): void {
    this.#unfollow = this.catalog.follow((_snapshot, diff) =>
      this.#onChange(diff)
    );
    this.catalog.start();
    warmUp(this.#environment.generate);
    void this.catalog.whenSynced().then(() => this.#onSynced());
  }

  /** The methods as one connection may call them. */
  methods(arrival: Arrival): Readonly<Record<string, MethodHandler>> {
    return adsMethods((form) => (call) => {
      const stream = this.#begin(call, arrival, form);
      this.#streams.add(stream);
      const isStranger = !arrival.needsNoProof &&
        arrival.identity.kind === "anonymous";
      if (isStranger) this.#strangers.add(stream);
      this.#timer ??= this.#tickLater();
      return stream;
    });
  }

  /** @throws {GrpcError} */
  #begin(call: ServerCall, arrival: Arrival, form: StreamForm): AdsStream {
    try {
      assertSomebody(arrival, call.metadata);
      this.#assertRoom();
      const prefix = `${this.#epoch}.${(++this.#streamCount).toString(36)}.`;
      const share = this.#shares.of(arrival);
      return new AdsStream(call, arrival, form, this.#host, prefix, share);
    } catch (error) {
      this.#metrics.turnedAway();
      throw error;
    }
  }

  /** Rules about who sees what may be others now. */
  reconsider(): void {
    if (this.#state !== "serving") return;
    let isAnyOther = false;
    for (const stream of this.#streams) {
      if (stream.lookAgain()) isAnyOther = true;
    }
    if (!isAnyOther) return;
    this.#changedMs ??= this.#environment.timers.now();
    this.#debounce.changed();
  }

  /** Nobody is served any more; clients are told to look for another server. */
  drain(reason: string): void {
    if (this.#state === "draining") return;
    this.#state = "draining";
    this.#debounce.stop();
    this.#preparation.stop();
    this.#queue.stop();
    this.#timer?.cancel();
    this.#unfollow();
    const status = { code: StatusCode.UNAVAILABLE, message: reason };
    for (const stream of [...this.#streams]) stream.end(status);
  }

  /** Ends the sources, too. */
  async stop(reason: string): Promise<void> {
    this.drain(reason);
    await this.catalog.stop();
  }

  #createHost(): AdsHost {
    const { timers, admit, visibleTo } = this.#environment;
    return {
      clock: timers,
      decoder: new RequestDecoder(),
      observer: this.#metrics,
      admit: ({ arrival, subscriber, call }) =>
        admitSubscriber(arrival, subscriber!, call.metadata, admit),
      audienceOf: ({ node, said, connectProxy }) =>
        audienceOf(said, {
          visible: visibleTo(node ?? ""),
          ...(connectProxy === undefined ? {} : { connectProxy }),
        }),
      viewOf: (audience) => this.viewOf(audience),
      enlist: ({ share }, audience, before) =>
        this.#audienceUse.enlist(share, audience.key, before?.key),
      joined: (stream) => {
        this.#strangers.delete(stream);
        stream.arrival.known?.();
        this.#metrics.joined(stream);
        if (!this.isReady) return;
        this.#preparation.prepare(
          [stream.audience!],
          () => this.#queue.add(stream),
        );
      },
      ended: (stream, reason, audience) => {
        this.#queue.remove(stream);
        this.#strangers.delete(stream);
        if (audience !== undefined) {
          this.#audienceUse.leave(stream.share, audience.key);
        }
        if (this.#streams.delete(stream)) this.#metrics.ended(stream, reason);
      },
    };
  }

  #assertRoom(): void {
    if (this.#state === "draining") {
      throw new GrpcError(StatusCode.UNAVAILABLE, "the server is stopping");
    }
    if (this.#streams.size < STREAMS_MAX) return;
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `Cannot serve more than ${STREAMS_MAX} discovery streams at once`,
    );
  }

  #onSynced(): void {
    if (this.#state !== "starting") return;
    this.#state = "serving";
    this.#changedMs = this.#environment.timers.now();
    this.#debounce.changed();
  }

  #onChange(diff: Diff): void {
    if (this.#state !== "serving") return;
    this.#changedMs ??= this.#environment.timers.now();
    this.#debounce.changed(losersIn(diff));
  }

  #push(done: () => void): void {
    const { timers } = this.#environment;
    const startMs = timers.now();
    this.#toldMs = this.#changedMs ?? startMs;
    this.#changedMs = undefined;
    this.views.update(this.catalog.snapshot);
    const { made, lacking } = this.#audiences();
    for (const [audience, streams] of lacking) {
      this.#preparation.prepare([audience], () => {
        this.#queue.addAll(streams, () => this.#unserved.look());
      });
    }
    this.#preparation.prepare(
      made,
      () =>
        this.#queue.addAll(this.#streams, () => {
          this.#metrics.pushed(timers.now() - startMs);
          this.#unserved.look();
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
    for (const stream of this.#streams) {
      if (stream.audience === undefined) continue;
      const audience = byKey.get(stream.audience.key) ?? stream.audience;
      byKey.set(audience.key, audience);
      const waiting = lacking.get(audience);
      if (waiting !== undefined) waiting.push(stream);
      else if (made.has(audience)) continue;
      else if (this.views.lastViewOf(audience) !== undefined) {
        made.add(audience);
      } else lacking.set(audience, [stream]);
    }
    return { made, lacking };
  }

  #tickLater(): Timer {
    return this.#environment.timers.after(TICK_MS, () => {
      const nowMs = this.#environment.timers.now();
      for (const stream of this.#streams) stream.tick(nowMs);
      this.#timer = this.#streams.size > 0 ? this.#tickLater() : undefined;
    });
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

/**
 * The streams that are open: which may begin, what each has of the server, and
 * what is looked at from time to time. What they are told is not decided here.
 *
 * @module
 */

import type { MethodHandler, ServerCall } from "../../../proto/grpc/call.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { LinkPeer } from "../../../proto/link/link.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import { adsMethods, type StreamForm } from "../../../proto/xds/ads_methods.ts";
import { RequestDecoder } from "../../../proto/xds/request_decoder.ts";
import {
  type Admit,
  admitSubscriber,
  assertSomebody,
  peerOf,
} from "../access/admission.ts";
import { AudienceUse } from "../access/audience_use.ts";
import { Shares } from "../access/shares.ts";
import { WaitingStrangers } from "../access/strangers.ts";
import type { Arrival } from "../access/subscriber.ts";
import { audienceOf } from "../generate/audience.ts";
import type { Views } from "../generate/views.ts";
import { PushQueue } from "./push_queue.ts";
import { type AdsHost, type AdsObserver, AdsStream } from "./ads_stream.ts";
import type { Visibility } from "../../policy/visibility.ts";

/** Streams at once, of all clients together; an idle one costs some 20 KB. */
export const STREAMS_MAX = 20_000;

/** How often streams are looked at for what is due without an event. */
export const TICK_MS = 1_000;

/** What {@linkcode OpenStreams} needs. */
export interface OpenStreamsOptions {
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** What clients are told of who answers them. */
  readonly server: string;
  /** Whether somebody may be the node that it says. */
  readonly admit: Admit;
  /** The services that a node may know of; empty: nobody's node. */
  visibleTo(node: string): Visibility;
  readonly views: Views;
  readonly metrics: AdsObserver;
  /** Why nobody is answered for now, if that is so. */
  problem(): string | undefined;
  /** One has said who it is, and was let in. */
  joined(stream: AdsStream): void;
  /** One is over, whether it had joined or not. */
  ended(stream: AdsStream): void;
}

/** A subscriber as far as it is like an agent's link: known, and ended. */
export interface SubscriberLink {
  readonly peer: LinkPeer;
  close(reason: string): void;
}

/** See the module description. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #host: AdsHost;
  readonly #streams = new Set<AdsStream>();
  readonly #shares: Shares;
  readonly #strangers = new WaitingStrangers<AdsStream>();
  readonly #audienceUse: AudienceUse;
  /** Those that have more to say than a slice has room for. */
  readonly #late: PushQueue<AdsStream>;
  /** In front of all nonces: not what they were before a restart. */
  readonly #epoch: string;
  #streamCount = 0;
  #isDraining = false;
  #timer: Timer | undefined;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
    this.#epoch = Math.floor(options.random() * 36 ** 5).toString(36);
    this.#audienceUse = new AudienceUse(options.views);
    this.#shares = new Shares(options.timers);
    this.#late = new PushQueue({
      timers: options.timers,
      tell: (stream) => stream.goOn(),
    });
    this.#host = this.#createHost();
  }

  /** All that there are, also those that have not said who they are. */
  get all(): ReadonlySet<AdsStream> {
    return this.#streams;
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

  /**
   * Rules about who sees what may be others now.
   *
   * @returns Whether that is so for anybody.
   */
  lookAgain(): boolean {
    let isAnyOther = false;
    for (const stream of this.#streams) {
      if (stream.lookAgain()) isAnyOther = true;
    }
    return isAnyOther;
  }

  /** Ends them all, and lets none begin. */
  drain(reason: string): void {
    this.#isDraining = true;
    this.#timer?.cancel();
    this.#late.stop();
    this.endAll(reason);
  }

  /** Sends all that there are now to other servers. */
  endAll(reason: string): void {
    const status = { code: StatusCode.UNAVAILABLE, message: reason };
    for (const stream of [...this.#streams]) stream.end(status);
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
      this.#options.metrics.turnedAway();
      throw error;
    }
  }

  #assertRoom(): void {
    if (this.#isDraining) {
      throw new GrpcError(StatusCode.UNAVAILABLE, "the server is stopping");
    }
    const problem = this.#options.problem();
    if (problem !== undefined) {
      throw new GrpcError(StatusCode.UNAVAILABLE, problem);
    }
    if (this.#streams.size < STREAMS_MAX) return;
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `Cannot serve more than ${STREAMS_MAX} discovery streams at once`,
    );
  }

  #createHost(): AdsHost {
    const { timers, server, admit, visibleTo, views, metrics } = this.#options;
    return {
      server,
      clock: timers,
      decoder: new RequestDecoder(),
      observer: metrics,
      admit: ({ arrival, subscriber, call }) =>
        admitSubscriber(arrival, subscriber!, call.metadata, admit),
      audienceOf: ({ node, said, connectProxy }) =>
        audienceOf(said, {
          visible: visibleTo(node ?? ""),
          ...(connectProxy === undefined ? {} : { connectProxy }),
        }),
      viewOf: (audience) => views.lastViewOf(audience),
      enlist: ({ share }, audience, before) =>
        this.#audienceUse.enlist(share, audience.key, before?.key),
      joined: (stream) => {
        this.#strangers.delete(stream);
        stream.arrival.known?.();
        metrics.joined(stream);
        this.#options.joined(stream);
      },
      later: (stream) => this.#late.addLater(stream),
      ended: (stream, reason, audience) => {
        this.#options.ended(stream);
        this.#late.remove(stream);
        this.#strangers.delete(stream);
        if (audience !== undefined) {
          this.#audienceUse.leave(stream.share, audience.key);
        }
        if (this.#streams.delete(stream)) metrics.ended(stream, reason);
      },
    };
  }

  #tickLater(): Timer {
    return this.#options.timers.after(TICK_MS, () => {
      const nowMs = this.#options.timers.now();
      for (const stream of this.#streams) stream.tick(nowMs);
      this.#timer = this.#streams.size > 0 ? this.#tickLater() : undefined;
    });
  }
}

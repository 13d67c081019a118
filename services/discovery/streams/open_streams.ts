/**
 * The streams that are open: which may begin, what each uses of the server, and
 * what is checked from time to time. What they are sent is not decided here.
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
  type CallOrigin,
  peerOf,
  refuseUnauthenticated,
  type Subscriber,
} from "../access/subscriber.ts";
import { ClientGroupUse, Quotas } from "../access/quota.ts";
import { type ClientGroup, clientGroupOf } from "../generate/client_group.ts";
import type { Views } from "../generate/views.ts";
import type { DiscoveryMetrics } from "./discovery_metrics.ts";
import type { Visibility } from "../../catalog/model/model.ts";
import type { View } from "../view/view.ts";
import { PushQueue } from "./push_queue.ts";
import { SubscriberStream } from "./subscriber_stream.ts";

/** Streams at once, of all clients together; an idle one costs some 20 KB. */
export const DISCOVERY_STREAMS_MAX = 20_000;

/**
 * Streams of callers without a certificate that are not admitted yet. Tokens are
 * checked within ten seconds, a few at once.
 */
export const UNAUTHENTICATED_STREAMS_MAX = 256;

/** How often streams are checked for what is due without an event. */
export const TICK_MS = 1_000;

/** What streams take from the server. */
export interface StreamsEnvironment {
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The server's name in each response (`control_plane`). */
  readonly server: string;
  /** Whether a caller may be the node that it names. */
  readonly admit: Admit;
  /** The services that a node may see; empty: callers that are no node. */
  visibleTo(node: string): Visibility;
}

/** What {@linkcode OpenStreams} needs. */
export interface OpenStreamsOptions extends StreamsEnvironment {
  readonly views: Views;
  readonly metrics: DiscoveryMetrics;
  /** Why the server answers no client for now, if that is so. */
  problem(): string | undefined;
  /** A stream has sent its node, and was admitted. */
  joined(stream: SubscriberStream): void;
  /** A stream is over, whether it had joined or not. */
  ended(stream: SubscriberStream): void;
}

/** A subscriber in the form of an agent's link: it can be listed and ended. */
export interface SubscriberLink {
  readonly peer: LinkPeer;
  close(reason: string): void;
}

/** See the module description. */
export class OpenStreams {
  readonly timers: Timers;
  readonly metrics: DiscoveryMetrics;
  /** The server's name in each response. */
  readonly server: string;
  readonly decoder = new RequestDecoder();
  readonly #streams = new Set<SubscriberStream>();
  readonly #quotas: Quotas;
  /**
   * In the order in which they came. A caller without a certificate opens them
   * at no cost, so the oldest makes room for the next; callers with a
   * certificate wait beside them.
   */
  readonly #unauthenticated = new Set<SubscriberStream>();
  readonly #groupUse: ClientGroupUse;
  /** Streams that have more to send than a slice has room for. */
  readonly #late: PushQueue<SubscriberStream>;
  /** Prefix of all nonces; it differs after a restart. */
  readonly #epoch: string;
  #streamCount = 0;
  #isDraining = false;
  #timer: Timer | undefined;

  constructor(private readonly options: OpenStreamsOptions) {
    this.#epoch = Math.floor(options.random() * 36 ** 5).toString(36);
    this.#groupUse = new ClientGroupUse(options.views);
    this.#quotas = new Quotas(options.timers);
    this.#late = new PushQueue({
      timers: options.timers,
      push: (stream) => stream.pushRest(),
    });
    this.timers = options.timers;
    this.metrics = options.metrics;
    this.server = options.server;
  }

  /** All streams, also those that have not sent their node yet. */
  get all(): ReadonlySet<SubscriberStream> {
    return this.#streams;
  }

  /** Subscribers that had to authenticate, to be authorized again. */
  get links(): readonly SubscriberLink[] {
    const links: SubscriberLink[] = [];
    for (const stream of this.#streams) {
      const { origin, subscriber } = stream;
      if (subscriber === undefined || origin.needsNoProof) continue;
      const peer = peerOf(origin, subscriber);
      const code = StatusCode.PERMISSION_DENIED;
      const close = (message: string) => stream.end({ code, message });
      links.push({ peer, close });
    }
    return links;
  }

  /** The methods as one connection may call them. */
  methods(origin: CallOrigin): Readonly<Record<string, MethodHandler>> {
    return adsMethods((form) => (call) => {
      const stream = this.#begin(call, origin, form);
      this.#streams.add(stream);
      const isUnauthenticated = !origin.needsNoProof &&
        origin.identity.kind === "anonymous";
      if (isUnauthenticated) this.#addUnauthenticated(stream);
      this.#timer ??= this.#tickLater();
      return stream;
    });
  }

  /**
   * The rules about visible services may have changed.
   *
   * @returns Whether any stream is of another group now.
   */
  reconsider(): boolean {
    let isAnyMoved = false;
    for (const stream of this.#streams) {
      if (stream.reconsider()) isAnyMoved = true;
    }
    return isAnyMoved;
  }

  /** Ends all streams, and lets none begin. */
  drain(reason: string): void {
    this.#isDraining = true;
    this.#timer?.cancel();
    this.#late.stop();
    this.endAll(reason);
  }

  /** Sends the clients of all streams to other servers. */
  endAll(reason: string): void {
    const status = { code: StatusCode.UNAVAILABLE, message: reason };
    for (const stream of [...this.#streams]) stream.end(status);
  }

  #addUnauthenticated(stream: SubscriberStream): void {
    const waiting = this.#unauthenticated;
    waiting.add(stream);
    if (waiting.size <= UNAUTHENTICATED_STREAMS_MAX) return;
    const [oldest] = waiting;
    waiting.delete(oldest!);
    oldest!.end({
      code: StatusCode.RESOURCE_EXHAUSTED,
      message:
        `More than ${UNAUTHENTICATED_STREAMS_MAX} clients without a certificate ask ` +
        "for discovery at once; try again",
    });
  }

  /** @throws {GrpcError} */
  #begin(
    call: ServerCall,
    origin: CallOrigin,
    form: StreamForm,
  ): SubscriberStream {
    try {
      refuseUnauthenticated(origin, call.metadata);
      this.#assertRoom();
      const prefix = `${this.#epoch}.${(++this.#streamCount).toString(36)}.`;
      const quota = this.#quotas.of(origin);
      return new SubscriberStream(
        call,
        origin,
        form,
        this,
        prefix,
        quota,
      );
    } catch (error) {
      this.metrics.counters.turned_away_total.add();
      throw error;
    }
  }

  #assertRoom(): void {
    if (this.#isDraining) {
      throw new GrpcError(
        StatusCode.UNAVAILABLE,
        "the server is stopping",
        "TUN403",
      );
    }
    const problem = this.options.problem();
    if (problem !== undefined) {
      throw new GrpcError(StatusCode.UNAVAILABLE, problem);
    }
    if (this.#streams.size < DISCOVERY_STREAMS_MAX) return;
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `Cannot serve more than ${DISCOVERY_STREAMS_MAX} discovery streams at once`,
    );
  }

  // --- For streams -----------------------------------------------------------

  /** @throws {GrpcError} Or rejects with it, when it may not subscribe. */
  admit(stream: SubscriberStream): void | Promise<void> {
    const { origin, subscriber, call } = stream;
    const { admit } = this.options;
    return admitSubscriber(origin, subscriber!, call.metadata, admit);
  }

  clientGroupOf({ node, xdsNode, connectProxy }: Subscriber): ClientGroup {
    return clientGroupOf(xdsNode, {
      visible: this.options.visibleTo(node ?? ""),
      connectProxy,
    });
  }

  /** The view to send from now on; absent before the first is generated. */
  viewOf(group: ClientGroup): View | undefined {
    return this.options.views.viewOf(group);
  }

  /**
   * The stream is of this group from now on.
   *
   * @param before The group that it leaves.
   * @throws {GrpcError} RESOURCE_EXHAUSTED, unless it leaves one.
   */
  joinGroup(
    { quota }: SubscriberStream,
    group: ClientGroup,
    before?: ClientGroup,
  ): void {
    this.#groupUse.join(quota, group.key, before?.key);
  }

  /** The stream is a subscriber now, and gets a first push. */
  joined(stream: SubscriberStream): void {
    this.#unauthenticated.delete(stream);
    stream.origin.known?.();
    this.metrics.joined(stream);
    this.options.joined(stream);
  }

  /** The stream has more to send after others; see `SubscriberStream.pushRest`. */
  requeue(stream: SubscriberStream): void {
    this.#late.addLater(stream);
  }

  /** Called once for every stream, also for those that never joined. */
  ended(stream: SubscriberStream, reason: string, group?: ClientGroup): void {
    this.options.ended(stream);
    this.#late.remove(stream);
    this.#unauthenticated.delete(stream);
    if (group !== undefined) this.#groupUse.leave(stream.quota, group.key);
    if (this.#streams.delete(stream)) this.metrics.ended(stream, reason);
  }

  #tickLater(): Timer {
    return this.timers.after(TICK_MS, () => {
      const nowMs = this.timers.now();
      for (const stream of this.#streams) stream.tick(nowMs);
      this.#timer = this.#streams.size > 0 ? this.#tickLater() : undefined;
    });
  }
}

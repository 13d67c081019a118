/**
 * A server of ADS that says what a test says, over real sockets on loopback:
 * for what no server of ours would ever do.
 *
 * @module
 */

import { openServerConnection } from "../../../net/http2/server_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { type Stream, WOULD_BLOCK } from "../../../net/stream/stream.ts";
import { StreamLayer } from "../../../net/stream/stream_layer.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { ADS_PATHS } from "../../../services/ads/ads_connection.ts";
import type { ServerCall, ServerCallEvents } from "../../../proto/grpc/call.ts";
import { MessageReader } from "../../../proto/grpc/message_reader.ts";
import type { Status } from "../../../proto/grpc/status.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import {
  Any,
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "../../../proto/xds/xds_messages.ts";
import {
  kindOfUrl,
  type Resource,
  type ResourceKind,
  TYPE_URLS,
} from "../../../proto/xds/resource.ts";
import { arrivals } from "../peers/sockets.ts";

/** A request of either mode, as it was on the wire. */
export type AdsRequest = DiscoveryRequestMessage & DeltaDiscoveryRequestMessage;

/** What is told in one response. */
export interface AdsAnswer {
  readonly kind: ResourceKind;
  readonly version: string;
  readonly resources: readonly Resource[];
  /** Delta only. */
  readonly removed?: readonly string[];
}

/** One stream. */
export class ScriptedAdsCall implements ServerCallEvents {
  readonly requests: AdsRequest[] = [];
  readonly #reader: MessageReader;
  readonly #ended = Promise.withResolvers<void>();
  #waiters: { kind: ResourceKind; resolve: (request: AdsRequest) => void }[] =
    [];
  #unread: AdsRequest[] = [];
  #nonce = 0;

  constructor(readonly call: ServerCall, readonly mode: DiscoveryMode) {
    const codec = mode === "sotw"
      ? DiscoveryRequestMessage
      : DeltaDiscoveryRequestMessage;
    this.#reader = new MessageReader({
      onMessage: (bytes) => this.#take(codec.decode(bytes) as AdsRequest),
    });
  }

  /** Settles when the client has given it up. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** The next request of a kind that was not looked at. */
  next(kind: ResourceKind): Promise<AdsRequest> {
    const index = this.#unread
      .findIndex(({ typeUrl = "" }) => kindOfUrl(typeUrl) === kind);
    const [request] = index < 0 ? [] : this.#unread.splice(index, 1);
    if (request !== undefined) return Promise.resolve(request);
    return new Promise((resolve) => this.#waiters.push({ kind, resolve }));
  }

  /** @returns The nonce. */
  answer({ kind, version, resources, removed = [] }: AdsAnswer): string {
    const nonce = `n${++this.#nonce}`;
    const typeUrl = TYPE_URLS[kind];
    this.call.sendMessage(
      this.mode === "sotw"
        ? DiscoveryResponseMessage.encode({
          ...{ typeUrl, nonce, versionInfo: version },
          resources: resources.map(({ any }) => Any.decode(any)),
        })
        : DeltaDiscoveryResponseMessage.encode({
          ...{ typeUrl, nonce, systemVersionInfo: version },
          resources: resources.map(({ name, version, any }) => ({
            ...{ name, version },
            resource: Any.decode(any),
          })),
          removedResources: removed,
        }),
    );
    return nonce;
  }

  finish(status: Status): void {
    this.call.finish(status);
  }

  onBody(chunk: Uint8Array): void {
    this.#reader.push(chunk);
    this.call.consumed(chunk.length);
  }

  onHalfClose(): void {}

  onWritable(): void {}

  onCancel(): void {
    this.#ended.resolve();
  }

  #take(request: AdsRequest): void {
    this.requests.push(request);
    const kind = kindOfUrl(request.typeUrl ?? "");
    const index = this.#waiters.findIndex((waiter) => waiter.kind === kind);
    const [waiter] = index < 0 ? [] : this.#waiters.splice(index, 1);
    if (waiter === undefined) this.#unread.push(request);
    else waiter.resolve(request);
  }
}

/** See the module description. */
export class ScriptedAds implements Disposable {
  /** Receives nothing any more, and so says nothing: as when its machine is gone. */
  isFrozen = false;
  readonly calls: ScriptedAdsCall[] = [];
  readonly #listener: Deno.TcpListener;
  readonly #conns = new Set<Deno.TcpConn>();
  #waiters: ((call: ScriptedAdsCall) => void)[] = [];
  #unread: ScriptedAdsCall[] = [];

  constructor(port = 0) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port });
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.port };
  }

  /** The next stream that a client opens. */
  next(): Promise<ScriptedAdsCall> {
    const call = this.#unread.shift();
    if (call !== undefined) return Promise.resolve(call);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** The route breaks, for everybody who is connected. */
  cut(): void {
    for (const conn of this.#conns) conn.close();
    this.#conns.clear();
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.cut();
  }

  async #accept(): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      this.#conns.add(conn);
      const stream = new Freezable(denoStream(conn), () => this.isFrozen);
      openServerConnection(stream, {
        serves: {
          [ADS_PATHS.sotw]: (call) => this.#open(call, "sotw"),
          [ADS_PATHS.delta]: (call) => this.#open(call, "delta"),
        },
        timers: systemTimers,
        events: { onClosed: () => void this.#conns.delete(conn) },
      });
    }
  }

  #open(call: ServerCall, mode: DiscoveryMode): ScriptedAdsCall {
    const opened = new ScriptedAdsCall(call, mode);
    this.calls.push(opened);
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#unread.push(opened);
    else waiter(opened);
    return opened;
  }
}

/** Drops what is said to it while it is frozen. */
class Freezable extends StreamLayer {
  readonly #isFrozen: () => boolean;

  constructor(stream: Stream, isFrozen: () => boolean) {
    super(stream);
    this.#isFrozen = isFrozen;
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    let count = this.below.read(into);
    while (count > 0 && this.#isFrozen()) count = this.below.read(into);
    return count === 0 && this.#isFrozen() ? WOULD_BLOCK : count;
  }
}

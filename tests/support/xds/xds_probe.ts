/**
 * A client of xDS that does what a test tells it, message by message, right or
 * wrong, over real sockets.
 *
 * @module
 */

import { connectTls } from "../../../net/dial/server_connect.ts";
import { openClientConnection } from "../../../net/http2/client_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import {
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../../net/stream/stream.ts";
import { StreamLayer } from "../../../net/stream/stream_layer.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { CertificatePair } from "../certificates/throwaway_ca.ts";
import type { ClientCall } from "../../../proto/grpc/call.ts";
import { startCall } from "../../../proto/grpc/client.ts";
import { MessageReader } from "../../../proto/grpc/message_reader.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { type Status, statusName } from "../../../proto/grpc/status.ts";
import type { Connection } from "../../../proto/streams/connection.ts";
import type { MessageKind } from "../../../proto/xds/message_kind.ts";
import {
  ClusterLoadAssignment,
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "../../../proto/xds/xds_messages.ts";
import { ADS_PATHS } from "../../../services/ads/ads_connection.ts";
import { RESOURCE_MESSAGES } from "../../../proto/xds/resource_messages.ts";
import { type ResourceKind, TYPE_URLS } from "../../../proto/xds/resource.ts";
import { certificates } from "../certificates/certificates.ts";
import { whenLate } from "../watch/patience.ts";

/** Of each stream. */
const WINDOW_BYTES = 65_536;

/** Longest wait for anything. */
const TIMEOUT_MS = 10_000;

/** Stops reading when it is told to, so that the kernel's buffers fill. */
class GatedReads extends StreamLayer implements StreamUser {
  #isReading = true;
  #user: StreamUser | undefined;

  constructor(stream: Stream) {
    super(stream);
    stream.notify(this);
  }

  setOpen(isOpen: boolean): void {
    this.#isReading = isOpen;
    if (isOpen) this.goOn();
  }

  override notify(user: StreamUser): void {
    this.#user = user;
  }

  onReady(hint: number): void {
    this.#user?.onReady(hint);
  }

  onFault(): void {
    this.#user?.onFault();
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    return this.#isReading ? this.below.read(into) : WOULD_BLOCK;
  }
}

/** As whom a probe connects to an agent port. */
export interface ProbeTls {
  /** Absent: it shows none. */
  readonly pair?: CertificatePair;
  /** PEM; the tests' own unless given. */
  readonly ca?: string;
}

/** One connection. */
export class XdsProbe implements Disposable {
  readonly #connection: Connection;

  private constructor(stream: Stream, private readonly gate?: GatedReads) {
    this.#connection = openClientConnection(stream, {
      timers: systemTimers,
      // As of most clients: what they do not take waits in the server.
      settings: {
        initialWindowSize: WINDOW_BYTES,
        streamWindowMax: WINDOW_BYTES,
      },
    });
  }

  /** Without TLS, as programs on the server's machine. */
  static async plain(port: number): Promise<XdsProbe> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    const gate = new GatedReads(denoStream(conn));
    return new XdsProbe(gate, gate);
  }

  /** To an agent port. */
  static async tls(port: number, tls: ProbeTls): Promise<XdsProbe> {
    const { ca } = await certificates();
    const { cert = "", key = "" } = tls.pair ?? {};
    return await connectTls({
      host: "127.0.0.1",
      port,
      serverName: "tunnel-server",
      credentials: { cert, key, ca: tls.ca ?? ca },
      alpn: ["h2"],
      proxyEnv: {},
      timeoutMs: TIMEOUT_MS,
    }).then((transport) => new XdsProbe(transport));
  }

  /** A stream of state of the world. */
  sotw(
    fields: Readonly<Record<string, string>> = {},
    path: string = ADS_PATHS.sotw,
  ): SotwProbe {
    return new ProbeStream(this.#connection, path, fields, {
      request: DiscoveryRequestMessage,
      response: DiscoveryResponseMessage,
    });
  }

  /** A stream of differences. */
  delta(
    fields: Readonly<Record<string, string>> = {},
    path: string = ADS_PATHS.delta,
  ): DeltaProbe {
    return new ProbeStream(this.#connection, path, fields, {
      request: DeltaDiscoveryRequestMessage,
      response: DeltaDiscoveryResponseMessage,
    });
  }

  /** Whether bytes are taken from the socket. */
  set isReading(isReading: boolean) {
    this.gate?.setOpen(isReading);
  }

  [Symbol.dispose](): void {
    this.#connection.shutdown("the test is over");
    this.gate?.close();
  }
}

export type SotwProbe = ProbeStream<
  DiscoveryRequestMessage,
  DiscoveryResponseMessage
>;
export type DeltaProbe = ProbeStream<
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage
>;

/** What all responses have. */
interface AnyResponse {
  readonly typeUrl?: string | undefined;
  readonly nonce?: string | undefined;
}

/** One stream. */
export class ProbeStream<Request extends object, Response extends AnyResponse> {
  /** All responses so far that were not taken. */
  readonly responses: Response[] = [];
  /** How it ended. */
  readonly status: Promise<Status>;
  readonly #call: ClientCall;
  readonly #request: MessageKind<Request>;
  #waiting: (() => void)[] = [];
  #end: Status | undefined;

  constructor(
    connection: Connection,
    path: string,
    fields: Readonly<Record<string, string>>,
    kinds: {
      readonly request: MessageKind<Request>;
      readonly response: MessageKind<Response>;
    },
  ) {
    this.#request = kinds.request;
    const { promise, resolve } = Promise.withResolvers<Status>();
    this.status = promise;
    const reader = new MessageReader({
      messageBytesMax: 64 * 1024 * 1024,
      onMessage: (message) => {
        this.responses.push(kinds.response.decode(message));
        this.#wake();
      },
    });
    this.#call = startCall(connection, {
      path,
      authority: "localhost",
      metadata: new Metadata(fields),
    }, {
      onMetadata() {},
      onBody: (chunk) => {
        reader.push(chunk);
        this.#call.consumed(chunk.length);
      },
      onWritable() {},
      onStatus: (status) => {
        this.#end = status;
        resolve(status);
        this.#wake();
      },
    });
  }

  /** Says something. */
  send(request: Request): void {
    this.#call.sendMessage(this.#request.encode(request));
  }

  /** Bytes of any kind. */
  sendBytes(bytes: Uint8Array): void {
    this.#call.sendMessage(bytes);
  }

  /**
   * Waits for the next response, and takes it.
   *
   * @param kind Of this kind; others stay.
   */
  async next(kind?: ResourceKind): Promise<Response> {
    for (;;) {
      const index = this.responses.findIndex(({ typeUrl }) =>
        kind === undefined || typeUrl === TYPE_URLS[kind]
      );
      if (index !== -1) return this.responses.splice(index, 1)[0]!;
      if (this.#end !== undefined) {
        const { code, message } = this.#end;
        throw new Error(`The stream ended: ${statusName(code)} ${message}`);
      }
      await this.#news();
    }
  }

  /** Ends it from this side, without a goodbye. */
  cancel(): void {
    this.#call.cancel();
  }

  /** Ends it from this side in order. */
  halfClose(): void {
    this.#call.halfClose();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #news(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const inTime = whenLate(
      TIMEOUT_MS,
      () => reject(new Error(`No response within ${TIMEOUT_MS} ms`)),
    );
    try {
      await promise;
    } finally {
      inTime();
    }
  }
}

/** Names in a response of state of the world, in its order. */
export function namesIn(
  kind: ResourceKind,
  { resources = [] }: DiscoveryResponseMessage,
): readonly string[] {
  return resources.map((any) => {
    const { value = new Uint8Array(0) } = any;
    const message = RESOURCE_MESSAGES[kind].decode(value);
    return "clusterName" in message
      ? String(message.clusterName)
      : String((message as { readonly name?: string }).name);
  });
}

/** `IP:PORT` of all endpoints in a response, sorted. */
export function addressesIn(
  { resources = [] }: DiscoveryResponseMessage,
): readonly string[] {
  return resources.flatMap(({ value = new Uint8Array(0) }) =>
    (ClusterLoadAssignment.decode(value).endpoints ?? [])
      .flatMap(({ lbEndpoints = [] }) => lbEndpoints)
      .map(({ endpoint }) => {
        const { address, portValue } = endpoint?.address?.socketAddress ?? {};
        return `${address}:${portValue}`;
      })
  ).sort();
}

/**
 * Keeps one ADS stream open for a client: it connects, notices that a server is
 * gone, waits, and connects to the next one.
 *
 * A stream on which the server has sent a response is opened again soon; one
 * that ended without any waits longer each time (gRFC A57). Waits differ from
 * client to client, so that a thousand do not come back in one instant.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { Channel, type ChannelConnection } from "../../net/channel/channel.ts";
import { type Run, supervise } from "../../platform/time/supervise.ts";
import {
  type Status,
  StatusCode,
  statusName,
} from "../../proto/grpc/status.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { AdsClient } from "./ads_client.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import { openMessageStream } from "../../proto/grpc/client.ts";
import { decodeResponse, encodeRequest } from "../../proto/xds/client_codec.ts";
import type {
  DiscoveryMode,
  DiscoveryResponse,
} from "../../proto/xds/discovery.ts";

/** The client sends a PING after so long without a frame … */
export const KEEPALIVE_MS = 10_000;

/** … and takes the connection for lost after this time without an answer. */
export const KEEPALIVE_TIMEOUT_MS = 5_000;

/**
 * A server that has sent nothing so long after the request is left for the
 * next one. Ours answers within a second of knowing its own services.
 */
export const FIRST_RESPONSE_MS = 20_000;

/** Longest wait between two tries. */
export const ADS_RETRY_CAP_MS = 15_000;

/** Where a connection is. */
export type AdsState =
  | { readonly kind: "connecting" }
  /** The server has sent a response. */
  | { readonly kind: "open"; readonly server: string; readonly sinceMs: number }
  | { readonly kind: "waiting"; readonly problem: string }
  | { readonly kind: "stopped" };

/** The parts of a connection. */
export interface AdsConnectionOptions<T> {
  readonly client: AdsClient<T>;
  readonly upstream: Upstream;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** {@linkcode KEEPALIVE_MS} unless given. */
  readonly keepaliveMs?: number;
  /**
   * There is no stream, and why; it goes on trying.
   *
   * @param retryMs Until the next try.
   * @param code The status that a server has sent; absent: none has.
   */
  readonly onProblem?: (
    problem: string,
    retryMs: number,
    code?: StatusCode,
  ) => void;
  /**
   * A server closed the connection without a response, as one may that refuses the
   * certificate.
   */
  readonly onSilentEnd?: (() => void) | undefined;
}

/** How a stream ended: always for a reason. */
class StreamEnd extends Error {
  /** @param code The server's status, if it sent one. */
  constructor(problem: string, readonly code?: StatusCode) {
    super(problem);
  }
}

export class AdsConnection<T> {
  readonly #stopping = new AbortController();
  readonly #channel: Channel;
  #state: AdsState = { kind: "connecting" };
  #end: ((problem: string) => void) | undefined;
  #running: Promise<void> | undefined;
  #opened = 0;

  constructor(private readonly options: AdsConnectionOptions<T>) {
    const { upstream, timers, keepaliveMs = KEEPALIVE_MS } = options;
    this.#channel = new Channel({
      upstream,
      timers,
      keepalive: {
        intervalMs: keepaliveMs,
        timeoutMs: KEEPALIVE_TIMEOUT_MS,
      },
    });
  }

  get state(): AdsState {
    return this.#state;
  }

  /** Streams on which a server has sent a response. */
  get opened(): number {
    return this.#opened;
  }

  start(): void {
    const { timers, random, onProblem } = this.options;
    const { signal } = this.#stopping;
    const running = supervise<StreamEnd>({
      timers,
      random,
      capMs: ADS_RETRY_CAP_MS,
      signal,
      run: (run) => this.#runStream(run),
      problemOf,
      onProblem: ({ message: problem, code }, retryMs) => {
        this.#state = { kind: "waiting", problem };
        onProblem?.(problem, retryMs, code);
      },
    });
    this.#running = running.then(() => {
      this.#state = { kind: "stopped" };
    });
  }

  /** Ends the stream; the client receives nothing after. */
  async stop(): Promise<void> {
    const reason = "the client stops";
    this.#stopping.abort();
    this.#channel.close(reason);
    this.#end?.(reason);
    await this.#running;
  }

  /** Ends the stream that is open, if one is, and opens another. */
  reconnect(reason: string): void {
    this.#end?.(reason);
  }

  /** @throws {StreamEnd} Always; or why there was no connection. */
  async #runStream(run: Run): Promise<never> {
    this.#state = { kind: "connecting" };
    throw await this.#serve(await this.#channel.connection(), run);
  }

  /** Runs a stream over `connection` until it ends. */
  #serve(connection: ChannelConnection, run: Run): Promise<StreamEnd> {
    const { client, timers, onSilentEnd } = this.options;
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const { server, authority, scheme } = connection;
    let hasReceived = false;
    const end = (problem: string, code?: StatusCode) => {
      if (this.#end !== end) return;
      this.#end = undefined;
      timer.cancel();
      stream.cancel();
      client.closed();
      connection.leave(problem);
      resolve(new StreamEnd(problem, code));
    };
    const { mode } = client;
    const stream = openMessageStream(
      connection.http2,
      { authority, scheme, path: ADS_PATHS[mode] },
      RESPONSE_BYTES_MAX,
      {
        onMessage: (message) => receive(decodeResponse(mode, message)),
        onEnd: (status, isLost) => {
          if (this.#end !== end) return;
          if (!hasReceived && isLost) onSilentEnd?.();
          const code = isLost ? undefined : status.code;
          // One sentence, however it ends: it is said once for each.
          const isMute = scheme === "http" && !connection.hasAnswered;
          end(
            isLost && isMute
              ? `the server ${server} hangs up on HTTP/2 without TLS; an ` +
                `--agent-port wants https://${server}`
              : endText(server, status, isLost),
            code,
          );
        },
      },
    );
    const receive = (received: DiscoveryResponse) => {
      if (this.#end !== end) return;
      timer.cancel();
      if (!hasReceived) {
        hasReceived = true;
        run.succeeded();
        this.#opened++;
        this.#state = { kind: "open", server, sinceMs: timers.now() };
      }
      client.receive(received);
    };
    const timer = timers.after(FIRST_RESPONSE_MS, () => {
      end(`the server ${server} has sent nothing for ${FIRST_RESPONSE_MS} ms`);
    });
    this.#end = end;
    client.opened((request) => stream.send(encodeRequest(request)));
    return promise;
  }
}

/** Every failure of the upstream is the world's, and has a sentence already. */
function problemOf(error: unknown): StreamEnd {
  if (error instanceof StreamEnd) return error;
  const isSlip = error instanceof TypeError || !(error instanceof Error);
  if (isSlip) reportInternalError("task", error);
  return new StreamEnd(isSlip ? INTERNAL_ERROR : error.message);
}

function endText(
  server: string,
  { code, message }: Status,
  isLost: boolean,
): string {
  if (isLost) return `lost the server ${server}: ${message}`;
  const name = statusName(code);
  return code === StatusCode.OK
    ? `the server ${server} has ended the stream`
    : `the server ${server} has ended the stream with ${name}` +
      (message === "" ? "" : `: ${message}`);
}

/** Paths of the two methods (`envoy.service.discovery.v3`). */
export const ADS_PATHS: Readonly<Record<DiscoveryMode, string>> = {
  sotw:
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
  delta:
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
};

/**
 * Longest response accepted. Responses about clusters cannot be divided: those of
 * 20,000 services for a node proxy are a third of it.
 */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Dials by gRPC calls of a server, all over one channel.
 *
 * @module
 */

import { Channel, type ChannelConnection } from "../net/channel/channel.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { NODE_FIELD, ONE_AGENT_FIELD } from "../proto/link/dial_handler.ts";
import { randomDialId } from "../proto/link/dial_id.ts";
import { dialProxy } from "../proto/link/proxy_client.ts";
import { Metadata } from "../proto/grpc/metadata.ts";
import { LARGE_FRAME_SIZE } from "../proto/streams/settings.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import type { DialStarter, TunnelDial } from "./tunnel_dialer.ts";

/** PING a silent server after this long; the link is lost after the second. */
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** How often one dial is made again, over another connection. */
const RETRIES_MAX = 3;

export class GrpcDialer implements DialStarter {
  readonly #channel: Channel;
  readonly #timers: Timers;
  #isClosed = false;

  constructor(upstream: Upstream, timers: Timers) {
    this.#timers = timers;
    this.#channel = new Channel({
      upstream,
      timers,
      keepalive: KEEPALIVE,
      settings: { maxFrameSize: LARGE_FRAME_SIZE },
    });
  }

  async start(dial: TunnelDial, signal: AbortSignal): Promise<Conduit> {
    for (let retries = 0;;) {
      signal.throwIfAborted();
      if (this.#isClosed) {
        throw new TypeError("Cannot dial: the dialer was closed before");
      }
      // Taken and used in one turn, so that no two dials take the same place.
      const connection = this.#channel.take();
      if (connection === undefined) {
        await this.#channel.connect();
        continue;
      }
      try {
        return await this.#dialOn(connection, dial, signal);
      } catch (error) {
        // Who refuses our certificate will do so again.
        const isRefusal = connection.scheme === "https" &&
          !connection.hasAnswered;
        if (isRefusal || retries++ >= RETRIES_MAX || !canGoAgain(error, dial)) {
          throw error;
        }
      }
      connection.leave("the server takes no more calls");
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#channel.close(
      "the client is done",
      new DialError("cancelled", "the dialer was closed"),
    );
  }

  #dialOn(
    { http2, authority, scheme }: ChannelConnection,
    { target, node, oneAgent, earlyData }: TunnelDial,
    signal: AbortSignal,
  ): Promise<Conduit> {
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const pending = dialProxy(http2, target, {
      onConnected: resolve,
      onFailed: reject,
    }, {
      authority,
      scheme,
      timers: this.#timers,
      dialId: randomDialId((bytes) => crypto.getRandomValues(bytes)),
      ...(node !== undefined
        ? { metadata: new Metadata({ [NODE_FIELD]: node }) }
        : oneAgent === true
        ? { metadata: new Metadata({ [ONE_AGENT_FIELD]: "true" }) }
        : {}),
      ...(earlyData === undefined ? {} : { earlyData }),
    });
    signal.addEventListener("abort", () => pending.cancel());
    return promise;
  }
}

/**
 * The connection went, or its server is going, before there was an answer. What
 * the client had to say may have been heard then, and must not be said twice; a
 * connection to a target on which nothing was said does no harm.
 */
function canGoAgain(error: unknown, { earlyData }: TunnelDial): boolean {
  if (!(error instanceof DialError) || error.loss === undefined) return false;
  const saidNothing = earlyData === undefined || earlyData.length === 0;
  return error.loss === "unprocessed" || saidNothing;
}

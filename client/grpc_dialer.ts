/**
 * Dials by gRPC calls of a server, all over one channel.
 *
 * @module
 */

import { Channel, type ChannelConnection } from "../net/channel/channel.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { NODE_FIELD, ONE_AGENT_FIELD } from "../proto/link/dial_handler.ts";
import { dialIdOf } from "../proto/link/dial_id.ts";
import { newConnectionId } from "../platform/process/connection_ids.ts";
import { dialProxy } from "../proto/link/proxy_client.ts";
import {
  formatTraceparent,
  TRACEPARENT_FIELD,
} from "../proto/peer/trace_context.ts";
import { Metadata } from "../proto/grpc/metadata.ts";
import { LARGE_FRAME_SIZE } from "../proto/streams/settings.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import { orAborted } from "../platform/time/deadline.ts";
import {
  canGoAgain,
  type DialStarter,
  saysNothing,
  type TunnelDial,
} from "./dial_starter.ts";

/** PING a silent server after this long; the link is lost after the second. */
const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** How often one dial is made again, over another connection. */
const RETRIES_MAX = 3;

/**
 * A server that was heard so long ago may stand still by now: what may be sent
 * once only is kept until it has answered a PING.
 */
const FRESH_MS = 1_000;

/** One that is suspected to stand still has so long to say anything. */
const SUSPECT_MS = 10_000;

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

  async start(
    dial: TunnelDial,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Conduit> {
    const isCareful = onSending !== undefined && !saysNothing(dial);
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
        if (isCareful && !connection.isFresh(FRESH_MS)) {
          await answered(connection, signal);
          continue;
        }
        onSending?.();
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

  suspect(): () => boolean {
    return this.#channel.suspect(SUSPECT_MS, "the server stands still");
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
    dial: TunnelDial,
    signal: AbortSignal,
  ): Promise<Conduit> {
    const { target, id, earlyData } = dial;
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const pending = dialProxy(http2, target, {
      onConnected: resolve,
      onFailed: reject,
    }, {
      authority,
      scheme,
      timers: this.#timers,
      dialId: dialIdOf(id ?? newConnectionId()),
      metadata: metadataOf(dial),
      ...(earlyData === undefined ? {} : { earlyData }),
    });
    signal.addEventListener("abort", () => pending.cancel());
    return promise;
  }
}

function metadataOf({ node, oneAgent, trace }: TunnelDial): Metadata {
  const metadata = new Metadata();
  if (node !== undefined) metadata.add(NODE_FIELD, node);
  else if (oneAgent === true) metadata.add(ONE_AGENT_FIELD, "true");
  if (trace !== undefined) {
    metadata.add(TRACEPARENT_FIELD, formatTraceparent(trace));
  }
  return metadata;
}

/** @throws {DialError} When the connection ends instead: nothing was sent. */
async function answered(
  connection: ChannelConnection,
  signal: AbortSignal,
): Promise<void> {
  try {
    await orAborted(connection.answer(), signal);
  } catch (error) {
    signal.throwIfAborted();
    const { message } = error as Error;
    throw new DialError("link-lost", message, "unprocessed");
  }
}

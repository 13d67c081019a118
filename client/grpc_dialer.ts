/**
 * Dials by gRPC calls of a server, all over one channel.
 *
 * @module
 */

import { Channel, type ChannelConnection } from "../net/channel/channel.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { messageOf } from "../platform/errors/error_code.ts";
import { tunnelCodeOf } from "../proto/codes/codes.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { wishFields } from "../proto/link/dial_wishes.ts";
import { dialIdOf } from "../proto/link/dial_handler.ts";
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
 * If dials are answered this soon, a caller's first bytes wait for the answer:
 * then a stopped or cut-off server has not received them.
 */
const QUICK_MS = 10;

/** Weight of a new dial in their average time. */
const SMOOTHING = 1 / 8;

/** A server that seems to have stopped has this long for a sign of life. */
const SUSPECT_MS = 10_000;

export class GrpcDialer implements DialStarter {
  readonly #channel: Channel;
  #isClosed = false;
  /** What dials take until they are answered. */
  #usualMs = 0;

  constructor(upstream: Upstream, private readonly timers: Timers) {
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
    const isSilent = saysNothing(dial);
    let hasSaid = onSending === undefined && !isSilent;
    const sending = isSilent ? undefined : onSending && (() => {
      onSending();
      hasSaid = true;
    });
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
        return await this.#dialOn(connection, dial, signal, sending);
      } catch (error) {
        // A server that refuses our certificate will do so again.
        const isRefusal = connection.scheme === "https" &&
          !connection.hasAnswered;
        const code = tunnelCodeOf(connection.failure);
        if (isRefusal && code === "TUN206") {
          throw new DialError("link-lost", messageOf(error), { code });
        }
        if (
          isRefusal || retries++ >= RETRIES_MAX || !canGoAgain(error, hasSaid)
        ) throw error;
      }
      connection.leave("the server takes no more calls");
    }
  }

  isUnheard(): boolean {
    return this.#channel.isUnheard;
  }

  suspect(why: "for another" | "for words"): () => boolean {
    const waitMs = why === "for words" ? Infinity : SUSPECT_MS;
    return this.#channel.suspect(waitMs, "the server hangs");
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
    onSending: (() => void) | undefined,
  ): Promise<Conduit> {
    const { target, id, earlyData } = dial;
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const startMs = this.timers.now();
    const isQuick = this.#usualMs < QUICK_MS;
    const mayLeave = (leave: () => void) =>
      isQuick ? http2.pad() : http2.whenAlive(leave);
    const pending = dialProxy(http2, target, {
      onConnected: (conduit) => {
        const tookMs = this.timers.now() - startMs;
        this.#usualMs += (tookMs - this.#usualMs) * SMOOTHING;
        resolve(conduit);
      },
      onFailed: reject,
    }, {
      authority,
      scheme,
      timers: this.timers,
      dialId: dialIdOf(id ?? newConnectionId()),
      metadata: metadataOf(dial),
      ...{ earlyData, onSending },
      mayLeave: onSending && mayLeave,
    });
    signal.addEventListener("abort", () => pending.cancel());
    return promise;
  }
}

function metadataOf({ trace, ...wishes }: TunnelDial): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of wishFields(wishes)) metadata.add(name, value);
  if (trace !== undefined) {
    metadata.add(TRACEPARENT_FIELD, formatTraceparent(trace));
  }
  return metadata;
}

/**
 * Dials through a server's HTTP CONNECT frontend, a connection each.
 *
 * @module
 */

import { conduitOf } from "../net/stream/stream_conduit.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import { wishesOf } from "../proto/link/dial_wishes.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import { dialConnect } from "../net/http1/connect_client.ts";
import { openFrontendStream } from "./frontend_stream.ts";
import type { FrontendAddress } from "./tunnel_route.ts";
import type { DialStarter, TunnelDial } from "./dial_starter.ts";

export class ConnectDialer implements DialStarter {
  constructor(
    private readonly address: FrontendAddress,
    private readonly timers: Timers,
  ) {}

  async start(
    dial: TunnelDial,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Conduit> {
    const { target, id, trace, earlyData } = dial;
    if (target.protocol !== "tcp") {
      throw new DialError(
        "endpoint",
        `Cannot dial ${target.protocol} through CONNECT, which carries tcp ` +
          "only: give --proxy-mode=grpc and a server whose frontend speaks it",
      );
    }
    const stream = await openFrontendStream(this.address, "http1", {
      timers: this.timers,
      signal,
    });
    if (signal.aborted) {
      stream.close();
      signal.throwIfAborted();
    }
    // A socket that was connected says nothing of the server, a handshake does:
    // what may be sent once only waits for an answer then.
    const isLater = onSending !== undefined && this.address.kind === "unix";
    if (!isLater) onSending?.();
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const pending = dialConnect(conduitOf(stream), target.address, {
      onConnected: resolve,
      onFailed: reject,
    }, {
      ...wishesOf(dial),
      id,
      trace,
      ...(earlyData === undefined || isLater ? {} : { earlyData }),
    });
    signal.addEventListener("abort", () => pending.cancel());
    const conduit = await promise;
    if (!isLater) return conduit;
    try {
      onSending();
    } catch (error) {
      abandon(conduit, "another server was quicker");
      throw error;
    }
    // A fresh socket takes all of it.
    if (earlyData !== undefined) conduit.write(earlyData);
    return conduit;
  }

  close(): void {}
}

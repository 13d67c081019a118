/**
 * Two HTTP/2 engines joined in memory.
 *
 * What one writes reaches the other in a microtask, never inside the call, as
 * with a socket; a test can hold the line up, or break it.
 *
 * @module
 */

import type { MethodHandler } from "../../../proto/grpc/call.ts";
import { GrpcRouter } from "../../../proto/grpc/server.ts";
import { Connection } from "../../../proto/streams/connection.ts";
import type {
  ConnectionEvents,
  ConnectionOptions,
} from "../../../proto/streams/connection_events.ts";
import { REST } from "./conduit_probe.ts";
import type { Stream } from "../../../proto/streams/stream.ts";
import type { Timers } from "../../../proto/sync/clock.ts";

/** See {@linkcode ConnectionPair}. */
export interface ConnectionPairOptions {
  readonly clock: Timers;
  readonly client?: Partial<ConnectionOptions>;
  readonly server?: Partial<ConnectionOptions>;
  /** What the client can call, by path. */
  readonly methods?: Readonly<Record<string, MethodHandler>>;
  /** Serves what the client asks, in place of `methods`. */
  readonly onStream?: ConnectionEvents["onStream"];
  /** Which connection ended, and why. */
  readonly onClosed?: (role: "client" | "server", reason: string) => void;
}

/** See the module description. */
export class ConnectionPair {
  readonly client: Connection;
  readonly server: Connection;
  /** That the client opened. */
  readonly streams: Stream[] = [];
  #isBroken = false;

  constructor(options: ConnectionPairOptions) {
    const { clock: timers, methods = {} } = options;
    const router = new GrpcRouter({ methods, timers });
    const serve = options.onStream ?? ((stream) => router.accept(stream));
    const refuse = () => {
      throw new TypeError("Cannot take a stream as a client");
    };
    this.client = new Connection({
      role: "client",
      clock: options.clock,
      events: {
        onStream: refuse,
        onClosed: ({ reason }) => options.onClosed?.("client", reason),
      },
      ...options.client,
    });
    this.server = new Connection({
      role: "server",
      clock: options.clock,
      events: {
        onStream: (stream) => {
          this.streams.push(stream);
          return serve(stream);
        },
        onClosed: ({ reason }) => options.onClosed?.("server", reason),
      },
      ...options.server,
    });
    this.#carry(this.client, this.server);
    this.#carry(this.server, this.client);
    this.client.start();
    this.server.start();
  }

  /** The line breaks: both ends hear it. */
  break(reason: string): PromiseLike<void> {
    this.#isBroken = true;
    this.client.transportClosed(new Error(reason));
    this.server.transportClosed(new Error(reason));
    return REST;
  }

  #carry(from: Connection, to: Connection): void {
    let isScheduled = false;
    const turn = () => {
      isScheduled = false;
      if (this.#isBroken) return;
      const batch = from.takeOutput();
      if (batch === undefined) {
        if (from.isFinished) to.receiveEnd();
        return;
      }
      const bytes = batch.slice();
      from.outputWritten();
      to.receive(bytes);
      schedule();
    };
    const schedule = () => {
      if (isScheduled) return;
      isScheduled = true;
      queueMicrotask(turn);
    };
    from.setOutputListener(schedule);
  }
}

/**
 * The server's end of an HTTP/2 connection over a stream, whose requests are
 * gRPC's calls: one place for all who serve.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import { Connection } from "../../proto/streams/connection.ts";
import type { ConnectionOptions } from "../../proto/streams/connection_events.ts";
import type { Stream } from "../stream/stream.ts";
import type { ClientConnectionOptions } from "./client_connection.ts";
import { driveHttp2 } from "./http2_driver.ts";

/** What a server's connection may be given. */
export interface ServerConnectionOptions
  extends ClientConnectionOptions, Pick<ConnectionOptions, "sharedLimits"> {
  /** What the peer can call, by path; or what routes all its requests. */
  readonly serves: Readonly<Record<string, MethodHandler>> | GrpcRouter;
}

/** Begins HTTP/2 over `stream`, in this turn. */
export function openServerConnection(
  stream: Stream,
  { timers, serves, events, ...options }: ServerConnectionOptions,
): Connection {
  const router = serves instanceof GrpcRouter
    ? serves
    : new GrpcRouter({ timers, methods: serves });
  const connection = new Connection({
    ...options,
    role: "server",
    clock: timers,
    events: {
      onClosed: () => {},
      ...events,
      onStream: (request) => router.accept(request),
    },
  });
  connection.start();
  driveHttp2(stream, connection, timers);
  return connection;
}

/**
 * The client's end of an HTTP/2 connection over a stream: one place for all
 * callers of servers.
 *
 * @module
 */

import { Connection } from "../../proto/streams/connection.ts";
import type {
  ConnectionEvents,
  ConnectionOptions,
} from "../../proto/streams/connection_events.ts";
import { refusePush } from "../../proto/streams/stream.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Stream } from "../stream/stream.ts";
import { driveHttp2 } from "./http2_driver.ts";

/** What a client's connection may be given. */
export interface ClientConnectionOptions extends
  Pick<
    ConnectionOptions,
    "keepalive" | "settings" | "limits" | "receiveBudget"
  > {
  readonly timers: Timers;
  readonly events?: Partial<Omit<ConnectionEvents, "onStream">>;
}

/** Begins HTTP/2 over `stream`, in this turn. */
export function openClientConnection(
  stream: Stream,
  { timers, events, ...options }: ClientConnectionOptions,
): Connection {
  const connection = new Connection({
    ...options,
    role: "client",
    clock: timers,
    events: { onClosed: () => {}, ...events, onStream: refusePush },
  });
  connection.start();
  driveHttp2(stream, connection, timers);
  return connection;
}

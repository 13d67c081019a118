/**
 * The conduit that suits a socket best.
 *
 * @module
 */

import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { OctetSocket } from "./octet_socket.ts";
import { PolledConduit } from "./polled/polled_conduit.ts";
import { PolledSocket } from "./polled/polled_socket.ts";
import { SocketConduit, type SocketConduitOptions } from "./socket_conduit.ts";

/** @param socket Not to be used any more. */
export function conduitOf(
  socket: OctetSocket,
  options: SocketConduitOptions = {},
): Conduit {
  return socket instanceof PolledSocket
    ? new PolledConduit(socket, options)
    : new SocketConduit(socket, options);
}

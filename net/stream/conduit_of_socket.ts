/**
 * The conduit that suits a socket best.
 *
 * @module
 */

import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { ByteSocket } from "./byte_socket.ts";
import { PolledConduit } from "./polled_conduit.ts";
import { PolledSocket } from "./polled_socket.ts";
import { SocketConduit, type SocketConduitOptions } from "./socket_conduit.ts";

/** @param socket Not to be used any more. */
export function conduitOf(
  socket: ByteSocket,
  options: SocketConduitOptions = {},
): Conduit {
  return socket instanceof PolledSocket
    ? new PolledConduit(socket, options)
    : new SocketConduit(socket, options);
}

/**
 * Sets the options of a link's socket (`libc/tcp_options.ts`), whoever made it.
 *
 * @module
 */

import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import { openLibc } from "../libc/libc.ts";
import {
  type SocketEnd,
  tuneDescriptor,
  tuneLinkSocket,
} from "../libc/tcp_options.ts";
import type { ByteSocket } from "./byte_socket.ts";
import { PolledSocket } from "./polled_socket.ts";

/** @param socket Of TCP. */
export function tuneLink(socket: ByteSocket): void {
  if (socket instanceof PolledSocket) {
    tuneDescriptor(openLibc()!, socket.number);
  } else {
    tuneLinkSocket(endOf(socket.localAddress), endOf(socket.remoteAddress));
  }
}

function endOf(address: string): SocketEnd {
  return { hostname: hostOf(address), port: portOf(address) };
}

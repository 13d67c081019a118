/**
 * Sets the options of a link's socket (`libc/tcp_options.ts`), of either kind.
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
import type { Stream } from "./stream.ts";

/** @param stream Of TCP. */
export function tuneLink(stream: Stream): void {
  const { descriptor, localAddress, remoteAddress } = stream;
  if (descriptor !== undefined) tuneDescriptor(openLibc()!, descriptor);
  else tuneLinkSocket(endOf(localAddress), endOf(remoteAddress));
}

function endOf(address: string): SocketEnd {
  return { hostname: hostOf(address), port: portOf(address) };
}

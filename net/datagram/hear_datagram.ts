/**
 * The guard in front of whoever hears a UDP socket.
 *
 * @module
 */

import { reportInternalError } from "../../platform/errors/internal_errors.ts";
import type { DatagramEvents } from "./datagram_socket.ts";

/** One socket hears of many peers: what one of them says costs the others none. */
export function hear(
  events: DatagramEvents,
  bytes: Uint8Array,
  hostname: string,
  port: number,
  local?: string,
): void {
  try {
    events.onDatagram(bytes, hostname, port, local);
  } catch (error) {
    reportInternalError("datagram", error);
  }
}

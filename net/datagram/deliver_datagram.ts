/**
 * The guard around the owner of a UDP socket.
 *
 * @module
 */

import { reportInternalError } from "../../platform/errors/internal_errors.ts";
import type { DatagramEvents } from "./datagram_socket.ts";

/**
 * One socket serves many peers: an error with one peer's datagram must not
 * affect the others.
 */
export function deliverDatagram(
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

/**
 * Which of this machine's addresses a caller has connected to.
 *
 * A listener for all addresses has one name for all connections. Only the
 * kernel knows the address of a single one; we ask it where that matters.
 *
 * @module
 */

import { canonicalIp, formatIpAddress } from "../../proto/peer/ip_address.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { nameOf, openLibc } from "../libc/libc.ts";
import type { Stream } from "./stream.ts";

/** @returns An IP address; IPv4 as IPv4. */
export function localHostOf(stream: Stream): string {
  const library = openLibc();
  if (library !== undefined && stream.descriptor !== undefined) {
    const name = nameOf(library.getsockname, stream.descriptor);
    if (name !== undefined) {
      return formatIpAddress(Uint8Array.from(name.address.split(","), Number));
    }
  }
  return canonicalIp(hostOf(stream.localAddress));
}

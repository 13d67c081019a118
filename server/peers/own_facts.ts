/**
 * What a server can say of itself to others without having been told.
 *
 * @module
 */

import { readCertificates } from "../../platform/pki/certificate.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import { authorityIdOf } from "../../proto/identity/authority_ids.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";
import { AUTHORITIES_MAX } from "./member_record.ts";

/**
 * Where agents reach a server that listens here; empty: only somebody who knows
 * the network can say. All interfaces may be any address, and on loopback an
 * agent elsewhere would find itself.
 */
export function certainAddress(listening: string): string {
  const host = hostOf(listening);
  const isOpen = host === "0.0.0.0" || host === "::" || host === "";
  return isOpen || isLoopback(host) ? "" : listening;
}

/** Ids of the authorities in a bundle; none when they are very many. */
export function authorityIdsIn(pem: string): readonly string[] {
  try {
    const ids = readCertificates(pem).map(authorityIdOf);
    return ids.length > AUTHORITIES_MAX ? [] : [...new Set(ids)].sort();
  } catch (error) {
    // None: anybody may be an agent here.
    if (!(error instanceof PkiError)) throw error;
    return [];
  }
}

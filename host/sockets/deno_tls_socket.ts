/**
 * The platform's own TLS client sockets as {@linkcode OctetSocket}.
 *
 * Of the two TLS stacks this one reads into the caller's buffer, has true
 * backpressure and costs a fifth less CPU for uploads and no memory that grows
 * with the load (docs/performance.md). It lacks a switch for Nagle's algorithm,
 * so the C library is asked for that: without it small writes wait up to 40 ms.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/link/ip_address.ts";
import type { PeerIdentity } from "../../proto/link/link.ts";
import { ANONYMOUS } from "../tls/peer_identity.ts";
import { addressText } from "./deno_socket.ts";
import { type LibC, openLibc, tcpDescriptors } from "./libc.ts";
import type { OctetSocket } from "./octet_socket.ts";

/** From `netinet/in.h` and `netinet/tcp.h`. */
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const ON = new Uint8Array(new Uint32Array([1]).buffer);

/** Whether sockets of this kind can be had without Nagle's algorithm. */
export function canTurnOffNagle(): boolean {
  return openLibc() !== undefined;
}

/**
 * Wraps a connection whose handshake is over.
 *
 * @param alpn What it negotiated; empty for none.
 */
export function denoTlsSocket(conn: Deno.TlsConn, alpn: string): OctetSocket {
  const library = openLibc();
  if (library !== undefined) turnOffNagle(library, conn);
  return new DenoTlsSocket(conn, alpn);
}

/** An outgoing connection is known by its own address: nobody shares it. */
function turnOffNagle(library: LibC, conn: Deno.TlsConn): void {
  const { hostname, port } = conn.localAddr as Deno.NetAddr;
  const address = `${parseIpAddress(hostname)}`;
  for (const { descriptor, local } of tcpDescriptors(library)) {
    if (local.port !== port || local.address !== address) continue;
    library.setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, ON, ON.length);
    return;
  }
}

class DenoTlsSocket implements OctetSocket {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly #conn: Deno.TlsConn;
  #isClosed = false;

  constructor(conn: Deno.TlsConn, readonly alpn: string) {
    this.#conn = conn;
    // Read now: a closed connection has forgotten its addresses.
    this.remoteAddress = addressText(conn.remoteAddr);
    this.localAddress = addressText(conn.localAddr);
  }

  /** The platform shows no certificate; the handshake has verified it. */
  get identity(): PeerIdentity {
    return ANONYMOUS;
  }

  get closesInOrder(): boolean {
    return false;
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#conn.read(into);
  }

  write(octets: Uint8Array): Promise<number> {
    return this.#conn.write(octets);
  }

  closeWrite(): Promise<void> {
    return this.#conn.closeWrite();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#conn.close();
  }

  reset(): void {
    this.close();
  }
}

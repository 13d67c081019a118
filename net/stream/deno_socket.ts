/**
 * TCP and unix sockets of the platform as {@linkcode ByteSocket}.
 *
 * These have true backpressure and tell RST from FIN; they are also the
 * cheapest ones per byte, so everything without TLS uses them.
 *
 * @module
 */

import { hostPort } from "../../proto/peer/host_port.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import type { ByteSocket } from "./byte_socket.ts";
import { sendReset } from "../libc/tcp_reset.ts";

/**
 * Wraps a connected socket and turns Nagle's algorithm off: it would hold small
 * writes back for up to 40 ms.
 */
export function denoSocket(conn: Deno.Conn): ByteSocket {
  if ("setNoDelay" in conn) setNoDelay(conn as Deno.TcpConn);
  return new DenoSocket(conn);
}

class DenoSocket implements ByteSocket {
  readonly #conn: Deno.Conn;

  constructor(conn: Deno.Conn) {
    this.#conn = conn;
  }

  get alpn(): string {
    return "";
  }

  get identity(): PeerIdentity {
    return ANONYMOUS;
  }

  get closesInOrder(): boolean {
    return true;
  }

  get remoteAddress(): string {
    return addressText(this.#conn.remoteAddr);
  }

  get localAddress(): string {
    return addressText(this.#conn.localAddr);
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#conn.read(into);
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#conn.write(bytes);
  }

  closeWrite(): Promise<void> {
    return this.#conn.closeWrite();
  }

  close(): void {
    close(this.#conn);
  }

  reset(): void {
    if (this.#conn.localAddr.transport === "tcp") sendReset(this.#conn);
    close(this.#conn);
  }
}

/** `ip:port`, `[ip6]:port`, a path, or `unix` when the path is empty. */
export function addressText(address: Deno.Addr): string {
  if ("path" in address) return address.path || "unix";
  if (!("hostname" in address)) return address.transport;
  return hostPort(address.hostname, address.port);
}

function setNoDelay(conn: Deno.TcpConn): void {
  try {
    conn.setNoDelay(true);
  } catch {
    // The peer is gone already; the next read or write says so.
  }
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    // Closing twice is harmless; anything else is a bug.
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}

/**
 * A `node:tls` socket as a {@linkcode Transport}; server and client role.
 *
 * **Never paused.** On this platform a paused TLS socket buffers without bound
 * and loses the peer's end of stream, so `data` is always listened to and
 * HTTP/2's windows do the bounding. Everything that must be able to stall a
 * TLS peer uses `gated_tls_socket.ts` instead.
 *
 * @module
 */

import type { TLSSocket } from "node:tls";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import { peerIdentityOf } from "../trust/peer_identity.ts";
import { collectNursery } from "../../../platform/process/garbage.ts";
import type { Transport, TransportEvents } from "../../stream/transport.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { endOf, plainBytes } from "../../stream/byte_socket.ts";
import { tuneLinkSocket } from "../../libc/tcp_options.ts";

/**
 * Call this, and `start`, in the same turn in which the handshake was reported:
 * bytes that arrive without a listener would pause the socket.
 *
 * @param isTuned Its options are set already (`tcp_options.ts`): to find its
 *   descriptor takes a look at all there are.
 */
export function nodeTlsTransport(
  socket: TLSSocket,
  { isTuned = false }: { readonly isTuned?: boolean } = {},
): Transport {
  if (!isTuned) tune(socket);
  return new NodeTlsTransport(socket);
}

/** Smaller chunks are left to the collector: freeing them costs as much. */
const DISCARDED_BYTES_MIN = 4 * 1024;

/** After so many bytes in chunks the nursery is collected. */
const COLLECTED_BYTES = 4 * 1024 * 1024;

class NodeTlsTransport implements Transport {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly identity: PeerIdentity;
  readonly #socket: TLSSocket;
  #error: Error | undefined;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    // Read now: a closed socket has forgotten its addresses.
    this.remoteAddress = endpoint(socket.remoteAddress, socket.remotePort);
    this.localAddress = endpoint(socket.localAddress, socket.localPort);
    this.alpn = socket.alpnProtocol || "";
    this.identity = peerIdentityOf(socket);
  }

  start(events: TransportEvents): void {
    const socket = this.#socket;
    socket.on("data", (chunk: Uint8Array) => {
      events.onChunk(plainBytes(chunk));
      discard(chunk);
    });
    socket.on("end", () => events.onEnd());
    socket.on("error", (error: Error) => this.#error ??= describe(error));
    socket.once("close", () => events.onClose(this.#error));
    // Closed between the handshake and now: `close` will not come again.
    if (socket.closed) queueMicrotask(() => events.onClose(this.#error));
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.#socket.write(bytes, (error) => {
      if (error) this.#socket.destroy(error);
      else done();
    });
  }

  closeWrite(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}

function tune(socket: TLSSocket): void {
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  // Without addresses it is a unix socket, or over before it began.
  if (localAddress === undefined || remoteAddress === undefined) return;
  tuneLinkSocket(
    { hostname: localAddress, port: localPort ?? 0 },
    { hostname: remoteAddress, port: remotePort ?? 0 },
  );
}

/**
 * Frees the memory of a chunk that nobody may use any more. Each chunk comes in
 * memory of its own, hundreds of MB in a second, and the collector cannot see
 * how much that is: it would let it grow by 200 MB before it looks. What hangs
 * on to a chunk elsewhere in the platform is collected every few chunks.
 */
function discard(chunk: Uint8Array): void {
  if (chunk.length < DISCARDED_BYTES_MIN) return;
  const memory = chunk.buffer as ArrayBuffer;
  if (memory.byteLength === chunk.length) memory.transfer(0);
  uncollectedBytes += chunk.length;
  if (uncollectedBytes < COLLECTED_BYTES) return;
  uncollectedBytes = 0;
  collectNursery();
}

let uncollectedBytes = 0;

function endpoint(address: string | undefined, port: number | undefined) {
  if (address === undefined) return "unix";
  // An IPv4 peer of a dual-stack listener is known by its IPv4 address.
  return hostPort(address, port ?? 0);
}

function describe(error: Error): Error {
  const end = endOf(error);
  return new Error(end.kind === "clean" ? "" : end.reason, { cause: error });
}

/**
 * A TLS client's side of a connection, with backpressure and a certificate, by
 * `node:tls`; `tls_client_socket.ts` has what is cheaper where it can be had.
 *
 * On `node:tls` and not on `Deno.connectTls`, because that one only *adds* our
 * CA to the public ones it trusts, takes no other name than the one it connects
 * to, and cannot be given up. TLS runs over a {@linkcode TlsGate}; see there
 * why.
 *
 * @module
 */

import { isIP } from "node:net";
import tls from "node:tls";
import type { TlsMaterial } from "../trust/credentials.ts";
import { clientHandshakeError } from "../trust/tls_errors.ts";
import { GatedTlsSocket } from "./gated_socket.ts";
import type { ByteSocket } from "../../stream/byte_socket.ts";
import { TlsGate } from "./tls_gate.ts";

/** As whom, and whom to expect. */
export interface GatedTlsClientOptions {
  /** `ca` verifies the server, exclusively; empty means the public CAs. */
  readonly credentials: TlsMaterial;
  /** The name or address that the server's certificate must bear. */
  readonly serverName: string;
  /** Names and addresses of which any one does as well. */
  readonly otherNames?: readonly string[];
  /** Whoever answers is believed. */
  readonly isUnverified?: boolean;
  /** By preference; empty offers none. */
  readonly alpn: readonly string[];
  /** How to call the server in errors. */
  readonly address: string;
  /** Gives the handshake up; its reason is what this rejects with. */
  readonly signal: AbortSignal;
  /** Gets the certificates that the server shows, its own first (DER). */
  shown?(chain: readonly Uint8Array<ArrayBuffer>[]): void;
}

/**
 * Runs the handshake on `socket`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `socket` closed. In TLS 1.3 a client is done
 *   before the server has looked at its certificate (RFC 8446 §4.4.2), so a
 *   refusal comes later: the first `read` throws it.
 */
export function gatedTlsClientOver(
  socket: ByteSocket,
  options: GatedTlsClientOptions,
): Promise<ByteSocket> {
  const { address, signal } = options;
  const gate = new TlsGate(socket);
  return new Promise((resolve, reject) => {
    const secure = tls.connect(tlsOptions(options, gate));
    const settle = () => {
      signal.removeEventListener("abort", onAbort);
      secure.off("error", onError);
      secure.off("close", onClose);
    };
    const fail = (reason: unknown) => {
      settle();
      secure.on("error", () => {}); // It has failed already.
      secure.destroy();
      gate.destroy();
      reject(reason);
    };
    const onAbort = () => fail(signal.reason);
    const onError = (error: Error) =>
      fail(clientHandshakeError(error, address));
    const onClose = () => fail(clientHandshakeError(CLOSED, address));
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    secure.on("error", onError);
    secure.on("close", onClose);
    secure.once("secureConnect", () => {
      settle();
      options.shown?.(chainOf(secure.getPeerCertificate(true)));
      resolve(
        new VerdictSocket(new GatedTlsSocket(socket, gate, secure), address),
      );
    });
  });
}

function tlsOptions(
  options: GatedTlsClientOptions,
  gate: TlsGate,
): tls.ConnectionOptions {
  const { credentials: { cert, key, ca }, serverName, alpn } = options;
  const { otherNames = [] } = options;
  return {
    socket: gate,
    // Verified in either form; only names may be sent (RFC 6066 §3).
    host: serverName,
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...(cert === "" ? {} : { cert, key }),
    ...(ca === "" ? {} : { ca: [ca] }),
    ...(alpn.length === 0 ? {} : { ALPNProtocols: [...alpn] }),
    ...(options.isUnverified ? { rejectUnauthorized: false } : {}),
    ...(otherNames.length === 0 ? {} : {
      checkServerIdentity: (_host: string, shown: tls.PeerCertificate) =>
        nameProblem([serverName, ...otherNames], shown),
    }),
    minVersion: "TLSv1.2",
    allowHalfOpen: true,
  } as tls.ConnectionOptions;
}

/** A certificate as `node:tls` shows it. */
interface ShownCertificate {
  readonly raw?: Uint8Array;
  readonly issuerCertificate?: ShownCertificate;
}

/** More than anybody needs. */
const CHAIN_MAX = 16;

function chainOf(leaf: ShownCertificate | null): Uint8Array<ArrayBuffer>[] {
  const chain: Uint8Array<ArrayBuffer>[] = [];
  let next = leaf ?? undefined;
  // The last one may name itself as its issuer.
  const seen = new Set<unknown>();
  while (next?.raw !== undefined && !seen.has(next)) {
    if (chain.length === CHAIN_MAX) break;
    seen.add(next);
    chain.push(new Uint8Array(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}

/** What is wrong with the first name, unless the certificate bears another. */
function nameProblem(
  names: readonly string[],
  shown: tls.PeerCertificate,
): Error | undefined {
  const problems = names.map((name) => tls.checkServerIdentity(name, shown));
  return problems.includes(undefined) ? undefined : problems[0];
}

/** What {@linkcode clientHandshakeError} knows as a close without a word. */
const CLOSED = Object.assign(new Error("closed"), { code: "ECONNRESET" });

/** Takes a failure before the server's first byte for its verdict on us. */
class VerdictSocket implements ByteSocket {
  readonly closesInOrder = false;
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly identity: ByteSocket["identity"];
  readonly #socket: ByteSocket;
  readonly #address: string;
  #isAccepted = false;
  #isOurs = false;

  constructor(socket: ByteSocket, address: string) {
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.alpn = socket.alpn;
    this.identity = socket.identity;
    this.#socket = socket;
    this.#address = address;
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#isAccepted ? this.#socket.read(into) : this.#readVerdict(into);
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#isOurs = true;
    this.#socket.close();
  }

  reset(): void {
    this.#isOurs = true;
    this.#socket.reset();
  }

  async #readVerdict(into: Uint8Array): Promise<number | null> {
    let count: number | null;
    try {
      count = await this.#socket.read(into);
    } catch (error) {
      // A read that our own `close` has ended says nothing about the server.
      throw this.#isOurs ? error : clientHandshakeError(error, this.#address);
    }
    if (count === null && !this.#isOurs) {
      throw clientHandshakeError(CLOSED, this.#address);
    }
    this.#isAccepted = true;
    return count;
  }
}

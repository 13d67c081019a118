/**
 * A TLS client's handshake over a stream, by `node:tls`.
 *
 * Not by `Deno.connectTls`, because that one only *adds* our CA to the public
 * ones it trusts, takes no other name than the one it connects to, and cannot
 * be given up.
 *
 * @module
 */

import { isIP } from "node:net";
import tls from "node:tls";
import type { TlsMaterial } from "../trust/credentials.ts";
import {
  guarded,
  INTERNAL_ERROR,
} from "../../../platform/errors/internal_errors.ts";
import {
  clientHandshakeError,
  TlsHandshakeError,
} from "../trust/tls_errors.ts";
import type { Stream } from "../../stream/stream.ts";
import { NodeTlsStream } from "./node_tls_stream.ts";
import { TlsGate } from "./tls_gate.ts";

/** Our identity, and the server to expect. */
export interface NodeTlsClientOptions {
  /** `ca` verifies the server, exclusively; empty means the public CAs. */
  readonly credentials: TlsMaterial;
  /** The name or address that the server's certificate must bear. */
  readonly serverName: string;
  /** Names and addresses of which any one does as well. */
  readonly otherNames?: readonly string[] | undefined;
  /** The server is not verified. */
  readonly isUnverified?: boolean;
  /** In order of preference; empty: none is offered. */
  readonly alpn: readonly string[];
  /** How to call the server in errors. */
  readonly address: string;
  /** Gives the handshake up; its reason is what this rejects with. */
  readonly signal: AbortSignal;
  /** Gets the certificates that the server shows, its own first (DER). */
  shown?(chain: readonly Uint8Array<ArrayBuffer>[]): void;
}

/**
 * Runs the handshake on `stream`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `stream` closed.
 */
export function nodeTlsClient(
  stream: Stream,
  options: NodeTlsClientOptions,
): Promise<Stream> {
  const { address, signal } = options;
  const gate = new TlsGate(stream);
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
      gate.leave().then(() => reject(reason));
    };
    const onAbort = () => fail(signal.reason);
    const onError = (error: Error) =>
      fail(clientHandshakeError(error, address));
    const onClose = () => fail(clientHandshakeError(CLOSED, address));
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    secure.on("error", onError);
    secure.on("close", onClose);
    const connected = () => {
      settle();
      options.shown?.(chainOf(secure.getPeerCertificate(true)));
      resolve(new NodeTlsStream(stream, gate, secure));
    };
    const slipped = () => fail(new TlsHandshakeError("other", INTERNAL_ERROR));
    secure.once(
      "secureConnect",
      () => guarded("handshake", connected, slipped),
    );
  });
}

function tlsOptions(
  options: NodeTlsClientOptions,
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

/** More than any chain needs. */
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

/** The fault of the first name, unless the certificate has another one. */
function nameProblem(
  names: readonly string[],
  shown: tls.PeerCertificate,
): Error | undefined {
  const problems = names.map((name) => tls.checkServerIdentity(name, shown));
  return problems.includes(undefined) ? undefined : problems[0];
}

/** What {@linkcode clientHandshakeError} knows as a close without a word. */
const CLOSED = Object.assign(new Error("closed"), { code: "ECONNRESET" });

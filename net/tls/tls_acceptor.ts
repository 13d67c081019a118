/**
 * TLS's server side of a port: takes accepted streams and gives the same
 * connections in plaintext, with backpressure. By OpenSSL where there is one,
 * else by `node:tls` behind a gate.
 *
 * Credentials are read at each handshake, so a reload needs nothing here.
 *
 * @module
 */

import type { SecureVersion } from "node:tls";
import { openLibssl } from "./openssl/library.ts";
import type { SecureContext } from "./openssl/secure_context.ts";
import { contextOf } from "./openssl/secure_contexts.ts";
import { SecureSession } from "./openssl/secure_session.ts";
import type { TlsChoice } from "../libc/choices.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { ClientCertificateRule } from "./trust/client_certificate.ts";
import type { TlsMaterial } from "./trust/credentials.ts";
import { TlsHandshakeError } from "./trust/tls_errors.ts";
import type { Stream } from "../stream/stream.ts";
import { handshakeAsServer } from "./openssl/handshake.ts";
import { nodeTlsServer } from "./node/node_tls_server.ts";

/** Certificate, key and CA, as they are now: `Credentials`. */
export interface CurrentMaterial {
  readonly current: TlsMaterial;
}

/** How long a handshake may take, and a peer to begin it. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/** A TLS server's identity, and its demands on clients. */
export interface TlsAcceptorOptions {
  /** Certificate and key of the server; the CA verifies clients. */
  readonly credentials: CurrentMaterial;
  /** Shown instead to clients that ask for this name (SNI, RFC 6066 §3). */
  readonly named?: {
    readonly name: string;
    readonly credentials: CurrentMaterial;
  };
  readonly clientCertificate: ClientCertificateRule;
  /** Protocols by preference; a client that offers none is still served. */
  readonly alpn: readonly string[];
  readonly minVersion: SecureVersion;
  /** See `SecureContextOptions`; the platform's TLS has no such limit. */
  readonly tls12Suites?: readonly string[];
  /** Default: {@linkcode HANDSHAKE_TIMEOUT_MS}. */
  readonly handshakeTimeoutMs?: number;
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
  /** One line for the log; the port goes on. */
  onProblem(line: string): void;
}

export class TlsAcceptor {
  /** For each credentials the last context that could be made of them. */
  readonly #used = new Map<CurrentMaterial, SecureContext>();
  readonly #refused = new WeakSet<TlsMaterial>();

  constructor(private readonly options: TlsAcceptorOptions) {}

  /** False: its limits would be broken, so every handshake is refused. */
  get canServe(): boolean {
    return this.options.tls12Suites === undefined ||
      this.#context() !== undefined;
  }

  /**
   * Runs the handshake on `stream`, which belongs to this from now on and may
   * still be closed: that gives the handshake up.
   *
   * @param closed The connection was closed from here.
   * @throws {TlsHandshakeError} With `stream` closed.
   */
  async accept(
    stream: Stream,
    closed: () => void = () => {},
  ): Promise<Stream> {
    stream.onClosed = closed;
    try {
      return await this.#accept(stream);
    } catch (error) {
      if (error instanceof TlsHandshakeError) throw error;
      reportInternalError("handshake", error);
      stream.close();
      throw new TlsHandshakeError("other", INTERNAL_ERROR, { cause: error });
    }
  }

  #accept(stream: Stream): Promise<Stream> {
    const { handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, tls12Suites } =
      this.options;
    const context = this.#context();
    if (context !== undefined) {
      const open = () => this.#session(context);
      return handshakeAsServer(stream, open, handshakeTimeoutMs);
    }
    if (tls12Suites !== undefined) {
      stream.close();
      const problem = "Cannot limit TLS to the cipher suites given: OpenSSL " +
        "cannot use this port's certificate";
      return Promise.reject(new TlsHandshakeError("other", problem));
    }
    const { credentials, named, ...options } = this.options;
    return nodeTlsServer(stream, {
      ...options,
      handshakeTimeoutMs,
      credentials: credentials.current,
      named: named &&
        { name: named.name, material: () => named.credentials.current },
    });
  }

  #session(context: SecureContext): SecureSession {
    return new SecureSession(context, { contextFor: this.#contextFor });
  }

  readonly #contextFor = (name: string): SecureContext | undefined => {
    const { named } = this.options;
    return name === named?.name
      ? this.#contextOf(named.credentials)
      : undefined;
  };

  /** @returns `undefined`: only the platform supports these credentials. */
  #context(): SecureContext | undefined {
    const { credentials, named } = this.options;
    const context = this.#contextOf(credentials);
    if (
      named !== undefined && this.#contextOf(named.credentials) === undefined
    ) {
      return undefined;
    }
    return context;
  }

  #contextOf(credentials: CurrentMaterial): SecureContext | undefined {
    const { clientCertificate, alpn, minVersion, tls12Suites, tls } =
      this.options;
    const library = tls === "platform" ? undefined : openLibssl();
    if (library === undefined) return undefined;
    const { current: material } = credentials;
    const context = contextOf(library, {
      role: { kind: "server", clientCertificate },
      material,
      alpn,
      minVersion,
      tls12Suites,
    });
    if (context instanceof Error) this.#report(material, context);
    else this.#used.set(credentials, context);
    // The platform's TLS may be less strict about keys, but has no choice of
    // suites.
    if (context instanceof Error && tls12Suites === undefined) return undefined;
    return this.#used.get(credentials);
  }

  #report(material: TlsMaterial, { message }: Error): void {
    if (this.#refused.has(material)) return;
    this.#refused.add(material);
    const { tls12Suites, onProblem } = this.options;
    onProblem(
      `OpenSSL cannot use this port's certificate (${message}); ` +
        (tls12Suites === undefined
          ? "the platform's TLS serves"
          : "what was used before serves on, as far as there was any: the " +
            "platform's TLS cannot be limited to cipher suites"),
    );
  }
}

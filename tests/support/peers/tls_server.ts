/**
 * A TLS port of ours in this process, for tests of its clients.
 *
 * @module
 */

import type { Stream } from "../../../net/stream/stream.ts";
import type { SocketListener } from "../../../net/bind/socket_listener.ts";
import {
  TlsAcceptor,
  type TlsAcceptorOptions,
} from "../../../net/tls/tls_acceptor.ts";
import { TlsHandshakeError } from "../../../net/tls/trust/tls_errors.ts";
import { certificates } from "../certificates/certificates.ts";
import type { TlsEngine } from "../rigs/tls_engines.ts";

/** See the module description. */
export class TlsServer implements AsyncDisposable {
  readonly port: number;
  /** Failures of handshakes, in order. */
  readonly refusals: TlsHandshakeError[] = [];
  /** The first of them. */
  readonly refused: Promise<TlsHandshakeError>;
  readonly #listener: SocketListener;
  readonly #refuse: (error: TlsHandshakeError) => void;
  readonly #accepting: Promise<void>;

  private constructor(
    engine: TlsEngine,
    onSocket: (socket: Stream) => void,
    options: TlsAcceptorOptions,
  ) {
    this.#listener = engine.listen();
    this.port = this.#listener.address.port;
    const { promise, resolve } = Promise.withResolvers<TlsHandshakeError>();
    this.refused = promise;
    this.#refuse = resolve;
    this.#accepting = this.#accept(onSocket, options);
  }

  /** @param options Instead of: a good certificate, one required, ALPN `h2`. */
  static async open(
    engine: TlsEngine,
    onSocket: (socket: Stream) => void,
    options: Partial<TlsAcceptorOptions> = {},
  ): Promise<TlsServer> {
    const { server, ca } = await certificates();
    return new TlsServer(engine, onSocket, {
      credentials: { current: { ...server, ca } },
      clientCertificate: "required",
      alpn: ["h2", "http/1.1"],
      minVersion: "TLSv1.2",
      tls: engine.tls,
      onProblem: (line) => {
        throw new Error(line);
      },
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
  }

  async #accept(
    onSocket: (socket: Stream) => void,
    options: TlsAcceptorOptions,
  ): Promise<void> {
    const acceptor = new TlsAcceptor(options);
    for (;;) {
      let socket: Stream;
      try {
        socket = await this.#listener.accept();
      } catch {
        return; // It is closed.
      }
      acceptor.accept(socket).then(onSocket, (error) => {
        if (!(error instanceof TlsHandshakeError)) throw error;
        this.refusals.push(error);
        this.#refuse(error);
      });
    }
  }
}

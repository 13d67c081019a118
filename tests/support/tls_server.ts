/**
 * A TLS port of ours in this process, for tests of its clients.
 *
 * @module
 */

import { denoSocket } from "../../host/sockets/deno_socket.ts";
import {
  type GatedTlsOptions,
  gatedTlsSocket,
} from "../../host/sockets/tls/gated_tls_socket.ts";
import type { OctetSocket } from "../../host/sockets/octet_socket.ts";
import { TlsHandshakeError } from "../../host/tls/tls_errors.ts";
import { certificates } from "./certificates.ts";
import { arrivals } from "./sockets.ts";

/** See the module description. */
export class TlsServer implements AsyncDisposable {
  readonly port: number;
  /** Failures of handshakes, in order. */
  readonly refusals: TlsHandshakeError[] = [];
  readonly #listener: Deno.TcpListener;
  readonly #accepting: Promise<void>;

  private constructor(
    onSocket: (socket: OctetSocket) => void,
    options: GatedTlsOptions,
  ) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#listener.addr.port;
    this.#accepting = this.#accept(onSocket, options);
  }

  /** @param options Instead of: a good certificate, one required, ALPN `h2`. */
  static async open(
    onSocket: (socket: OctetSocket) => void,
    options: Partial<GatedTlsOptions> = {},
  ): Promise<TlsServer> {
    const { server, ca } = await certificates();
    return new TlsServer(onSocket, {
      credentials: { ...server, ca },
      clientCertificate: "required",
      alpn: ["h2", "http/1.1"],
      handshakeTimeoutMs: 5_000,
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
  }

  async #accept(
    onSocket: (socket: OctetSocket) => void,
    options: GatedTlsOptions,
  ): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      gatedTlsSocket(denoSocket(conn), options).then(onSocket, (error) => {
        if (!(error instanceof TlsHandshakeError)) throw error;
        this.refusals.push(error);
      });
    }
  }
}

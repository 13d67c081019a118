/**
 * A TLS server's side of an accepted connection, with backpressure.
 *
 * The platform's TLS sockets with client certificates buffer without bound and
 * lose the peer's end of stream when they are paused. So the *encrypted* octets
 * are held back instead: TLS runs over a gate that reads from the network only
 * while the decrypted side has room. It costs some speed; carriers that bound
 * their peer themselves (HTTP/2 on the agent port) do without it.
 *
 * Credentials are given per connection, so a reload needs nothing here.
 *
 * @module
 */

import { Duplex } from "node:stream";
import tls from "node:tls";
import type { PeerIdentity } from "../../proto/link/link.ts";
import {
  type ClientCertificateRule,
  refuseClient,
} from "../tls/client_certificate.ts";
import { peerIdentityOf } from "../tls/peer_identity.ts";
import { serverHandshakeError } from "../tls/tls_errors.ts";
import { denoSocket } from "./deno_socket.ts";
import type { OctetSocket } from "./octet_socket.ts";
import { ReadBuffer } from "./read_buffer.ts";

/** Encrypted or decrypted octets that wait on either side of TLS. */
const HIGH_WATER_OCTETS = 64 * 1024;

/** How long octets that TLS has produced may take to leave after `close`. */
const CLOSE_LINGER_MS = 2_000;

/** How a TLS server presents itself and what it demands. */
export interface GatedTlsOptions {
  /** PEM; `ca` verifies clients. */
  readonly credentials: {
    readonly cert: string;
    readonly key: string;
    readonly ca?: string;
  };
  readonly clientCertificate: ClientCertificateRule;
  /** Protocols by preference; a client that offers none is still served. */
  readonly alpn: readonly string[];
  readonly handshakeTimeoutMs: number;
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly minVersion?: tls.SecureVersion;
  /** OpenSSL names joined by `:`. */
  readonly ciphers?: string;
}

/**
 * Runs the handshake on `conn`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `conn` closed.
 */
export function gatedTlsSocket(
  conn: Deno.Conn,
  options: GatedTlsOptions,
): Promise<OctetSocket> {
  const socket = denoSocket(conn);
  const gate = new Gate(socket);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => {
      gate.destroy();
      reject(error);
    };
    // One server object per connection: it opens no port, sees the newest
    // credentials, and is the only way to have clients truly verified.
    const server = tls.createServer(tlsOptions(options));
    server.on("tlsClientError", (error: Error, failed: tls.TLSSocket) => {
      failed.destroy();
      refuse(serverHandshakeError(error, socket.remoteAddress));
    });
    server.on("secureConnection", (secure: tls.TLSSocket) => {
      const refusal = refuseClient(
        secure,
        options.clientCertificate,
        options.credentials.ca ?? "",
        socket.remoteAddress,
      );
      if (refusal === undefined) {
        return resolve(new GatedTlsSocket(socket, gate, secure));
      }
      secure.on("error", ignore);
      secure.destroy();
      refuse(refusal);
    });
    server.emit("connection", gate);
  });
}

function tlsOptions(options: GatedTlsOptions): tls.TlsOptions {
  const { cert, key, ca } = options.credentials;
  return {
    cert,
    key,
    ...(ca === undefined ? {} : { ca: [ca] }),
    requestCert: options.clientCertificate !== "none",
    // Verified all the same; `refuseClient` decides and can say why.
    rejectUnauthorized: false,
    ALPNProtocols: [...options.alpn],
    handshakeTimeout: options.handshakeTimeoutMs,
    ...(options.minVersion === undefined
      ? {}
      : { minVersion: options.minVersion }),
    ...(options.ciphers === undefined ? {} : { ciphers: options.ciphers }),
    allowHalfOpen: true,
  } as tls.TlsOptions;
}

/** The encrypted side: reads only while the decrypted side has room. */
class Gate extends Duplex {
  readonly #socket: OctetSocket;
  readonly #reader = new ReadBuffer();
  #isReading = false;
  #wake: (() => void) | undefined;
  /** Whether the decrypted side is full. */
  isBlocked: () => boolean = () => false;

  constructor(socket: OctetSocket) {
    super({ allowHalfOpen: true, highWaterMark: HIGH_WATER_OCTETS });
    this.#socket = socket;
    this.on("error", ignore); // Reported through the TLS socket.
  }

  /** There may be room again. */
  open(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Ends the encrypted side once everything has left. */
  async finish(): Promise<void> {
    if (this.destroyed || this.writableFinished) return;
    await new Promise<void>((resolve) => {
      this.once("finish", resolve);
      this.once("close", resolve);
      this.end();
    });
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#readOnce().catch((error) => {
      this.#isReading = false;
      this.destroy(error);
    });
  }

  /** Gated on both sides of the read: an end must not pass a full reader. */
  async #readOnce(): Promise<void> {
    await this.#room();
    const count = await this.#socket.read(this.#reader.buffer);
    await this.#room();
    this.#isReading = false;
    if (this.destroyed) return this.#reader.release();
    if (count === null) {
      this.#reader.release();
      this.push(null);
      return;
    }
    const octets = this.#reader.buffer.slice(0, count);
    this.#reader.adapt(count);
    this.push(octets);
  }

  async #room(): Promise<void> {
    while (this.isBlocked() && !this.destroyed) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  override _write(
    chunk: Uint8Array,
    _encoding: string,
    done: (error?: Error) => void,
  ): void {
    this.#writeAll(chunk).then(() => done(), done);
  }

  async #writeAll(chunk: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < chunk.length) {
      offset += await this.#socket.write(chunk.subarray(offset));
    }
  }

  override _final(done: () => void): void {
    // A peer that has gone is noticed by reading.
    this.#socket.closeWrite().then(done, () => done());
  }

  override _destroy(
    error: Error | null,
    done: (error: Error | null) => void,
  ): void {
    this.open();
    this.#socket.close();
    done(error);
  }
}

class GatedTlsSocket implements OctetSocket {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly identity: PeerIdentity;
  readonly #socket: OctetSocket;
  readonly #gate: Gate;
  readonly #tls: tls.TLSSocket;
  #waiting: (() => void) | undefined;
  #state: "open" | "ended" | "closed" = "open";
  #error: Error | undefined;

  constructor(socket: OctetSocket, gate: Gate, secure: tls.TLSSocket) {
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.alpn = secure.alpnProtocol || "";
    this.identity = peerIdentityOf(secure);
    this.#socket = socket;
    this.#gate = gate;
    this.#tls = secure;
    // The platform forgets this option for TLS over a stream of ours.
    secure.allowHalfOpen = true;
    gate.isBlocked = () =>
      !secure.destroyed && secure.readableLength >= HIGH_WATER_OCTETS;
    secure.on("readable", () => this.#wakeReader());
    secure.on("end", () => {
      if (this.#state === "open") this.#state = "ended";
      this.#wakeReader();
    });
    secure.on("error", (error: Error) => this.#error ??= error);
    secure.on("close", () => this.#onClose());
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      const available = this.#tls.readableLength;
      if (available > 0) {
        const chunk = this.#tls.read(Math.min(into.length, available));
        if (!this.#gate.isBlocked()) this.#gate.open();
        into.set(chunk);
        return chunk.length;
      }
      if (this.#state === "ended") return null;
      if (this.#state === "closed") {
        throw this.#error ?? new Deno.errors.Interrupted("socket was closed");
      }
      // Asks for more, and for the end when nothing more comes.
      this.#tls.read();
      if (this.#tls.readableLength > 0 || this.#state !== "open") continue;
      await new Promise<void>((resolve) => this.#waiting = resolve);
    }
  }

  write(octets: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#tls.write(octets, (error) => {
        if (error) reject(error);
        else resolve(octets.length);
      });
    });
  }

  async closeWrite(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tls.once("error", reject);
      this.#tls.end(() => {
        this.#tls.off("error", reject);
        resolve();
      });
    });
    flushCloseNotify(this.#tls);
    await this.#gate.finish();
  }

  close(): void {
    this.#tls.destroy();
  }

  reset(): void {
    this.#socket.reset();
    this.#tls.destroy();
    this.#gate.destroy();
  }

  #wakeReader(): void {
    const wake = this.#waiting;
    this.#waiting = undefined;
    wake?.();
  }

  #onClose(): void {
    if (this.#state === "open") this.#state = "closed";
    this.#wakeReader();
    const gate = this.#gate;
    gate.open();
    if (gate.destroyed || gate.writableFinished) return void gate.destroy();
    const timer = setTimeout(() => gate.destroy(), CLOSE_LINGER_MS);
    gate.once("close", () => clearTimeout(timer));
    gate.finish().then(() => gate.destroy());
  }
}

/**
 * Sends TLS's goodbye (RFC 8446 §6.1), without which peers take the end for a
 * truncation. Over a stream of ours the platform prepares it and then forgets
 * to send it; this internal function of its does so, and where it is missing
 * the peer sees a truncation, as before.
 */
function flushCloseNotify(secure: tls.TLSSocket): void {
  const handle = (secure as unknown as {
    readonly _handle?: { readonly _flushEncOut?: () => void } | null;
  })._handle;
  handle?._flushEncOut?.();
}

function ignore(): void {}

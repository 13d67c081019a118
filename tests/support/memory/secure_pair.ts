/**
 * Two TLS sessions back to back in memory, without sockets, for tests.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { type LibSsl, openLibssl } from "../../../net/tls/openssl/library.ts";
import {
  SecureContext,
  type SecureContextOptions,
} from "../../../net/tls/openssl/secure_context.ts";
import {
  type HandshakeResult,
  SecureSession,
  WANT_READ,
} from "../../../net/tls/openssl/secure_session.ts";

/** Who asks for what; see {@linkcode securePair}. */
export interface PairOptions {
  readonly server: Partial<SecureContextOptions>;
  readonly client: Partial<SecureContextOptions>;
  /** Default: `localhost`. */
  readonly serverName?: string;
  readonly contextFor?: (name: string) => SecureContext | undefined;
  /** Of both ends. */
  readonly recordsPerKey?: number;
}

/** The library; tests that need it are ignored without one. */
export const LIBSSL: LibSsl | undefined = openLibssl();

/** A server that asks for nothing, unless `options` say otherwise. */
export function serverContext(
  options: Partial<SecureContextOptions>,
  library: LibSsl = LIBSSL!,
): SecureContext {
  return new SecureContext(library, {
    role: { kind: "server", clientCertificate: "none" },
    material: { cert: "", key: "", ca: "" },
    alpn: [],
    minVersion: "TLSv1.2",
    ...options,
  });
}

/** A client, likewise. */
export function clientContext(
  options: Partial<SecureContextOptions>,
  library: LibSsl = LIBSSL!,
): SecureContext {
  return serverContext({ role: { kind: "client" }, ...options }, library);
}

/** Both ends, before the first byte. To be freed. */
export function securePair(
  options: PairOptions,
): SecurePair {
  const { server, client, serverName = "localhost", contextFor } = options;
  const { recordsPerKey } = options;
  const keys = recordsPerKey === undefined ? {} : { recordsPerKey };
  return new SecurePair(
    new SecureSession(clientContext(client), { serverName, ...keys }),
    new SecureSession(serverContext(server), {
      ...contextFor && { contextFor },
      ...keys,
    }),
  );
}

/** See the module description. */
export class SecurePair {
  readonly client: SecureEnd;
  readonly server: SecureEnd;

  constructor(client: SecureSession, server: SecureSession) {
    this.client = new SecureEnd(client);
    this.server = new SecureEnd(server);
  }

  /** Goes on with the handshake until both are done, or none can go on. */
  doHandshake(step: number = Infinity): Outcomes {
    const { client, server } = this;
    for (let isMoving = true; isMoving;) {
      isMoving = client.shake() || server.shake();
      while (server.takeFrom(client, step) > 0) isMoving = server.shake();
      while (client.takeFrom(server, step) > 0) isMoving = client.shake();
    }
    return { client: client.outcome, server: server.outcome };
  }

  /** As `doHandshake`, where it must succeed. */
  connect(): this {
    const { client, server } = this.doHandshake();
    for (const outcome of [client, server]) {
      if (outcome instanceof Error) throw outcome;
      if (outcome !== "complete") throw new Error("They wait for each other");
    }
    return this;
  }

  free(): void {
    this.client.session.free();
    this.server.session.free();
  }

  /** For `using`. */
  [Symbol.dispose](): void {
    this.free();
  }
}

/** How a handshake went at both ends. */
export interface Outcomes {
  readonly client: HandshakeResult | Error | undefined;
  readonly server: HandshakeResult | Error | undefined;
}

/** One end, which takes from the other only when it wants to read. */
export class SecureEnd {
  /** Of the last attempt at the handshake. */
  outcome: HandshakeResult | Error | undefined;
  #wantsRead = false;

  constructor(readonly session: SecureSession) {}

  /** @returns Whether it went on. */
  shake(): boolean {
    const { outcome } = this;
    if (outcome === "complete" || outcome instanceof Error) return false;
    if (this.#wantsRead) return false;
    try {
      this.outcome = this.session.doHandshake();
    } catch (error) {
      this.outcome = error as Error;
    }
    this.#wantsRead = this.outcome === WANT_READ;
    return true;
  }

  /** @returns How many bytes moved; 0 also when it does not want to read. */
  takeFrom(peer: SecureEnd, bytesMax: number = Infinity): number {
    if (!this.#wantsRead || this.outcome instanceof Error) return 0;
    const { input } = this.session;
    const { output } = peer.session;
    const count = Math.min(output.length, input.length, bytesMax);
    if (count === 0) return 0;
    input.set(output.subarray(0, count));
    this.session.received(count);
    peer.session.sent(count);
    this.#wantsRead = false;
    return count;
  }

  /**
   * Puts bytes in as if the peer had sent them; the session must want to read.
   *
   * @returns How many of them, which is as many as there is room for.
   */
  put(bytes: Uint8Array): number {
    const { input } = this.session;
    const count = Math.min(bytes.length, input.length);
    input.set(bytes.subarray(0, count));
    this.session.received(count);
    this.#wantsRead = false;
    return count;
  }

  /** All that is to be sent, taken away. */
  drain(): Uint8Array {
    const parts: Uint8Array[] = [];
    for (;;) {
      const { output } = this.session;
      if (output.length === 0) return joinedBytes(parts);
      parts.push(output.slice());
      this.session.sent(output.length);
    }
  }

  /** As `SecureSession.read`. */
  read(into: Uint8Array<ArrayBuffer>): number {
    const count = this.session.read(into);
    this.#wantsRead = count === WANT_READ;
    return count;
  }

  /** What is there to be read without anything more of the peer's. */
  readAll(): Uint8Array {
    const parts: Uint8Array[] = [];
    const into = new Uint8Array(20_000);
    for (;;) {
      const count = this.read(into);
      if (count <= 0) return joinedBytes(parts);
      parts.push(into.slice(0, count));
    }
  }

  /** What arrives of all that `peer` has to send, in pieces of `step` bytes. */
  receive(peer: SecureEnd, step: number = Infinity): Uint8Array {
    const parts = [this.readAll()];
    while (this.takeFrom(peer, step) > 0) parts.push(this.readAll());
    return joinedBytes(parts);
  }
}

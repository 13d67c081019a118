/**
 * What OpenSSL can do and we never do, for tests of how we take it from others:
 * new keys, renegotiation, tickets, old versions.
 *
 * @module
 */

import type { LibSsl } from "../../../net/tls/openssl/library.ts";
import type { SecureContext } from "../../../net/tls/openssl/secure_context.ts";
import { SecureSession } from "../../../net/tls/openssl/secure_session.ts";
import { LIBSSL, SecurePair } from "../memory/secure_pair.ts";

const SYMBOLS = {
  SSL_version: { parameters: ["pointer"], result: "i32" },
  SSL_key_update: { parameters: ["pointer", "i32"], result: "i32" },
  SSL_renegotiate: { parameters: ["pointer"], result: "i32" },
  SSL_get1_session: { parameters: ["pointer"], result: "pointer" },
  SSL_set_session: { parameters: ["pointer", "pointer"], result: "i32" },
  SSL_session_reused: { parameters: ["pointer"], result: "i32" },
  SSL_get_peer_cert_chain: { parameters: ["pointer"], result: "pointer" },
  SSL_CTX_clear_options: { parameters: ["pointer", "u64"], result: "u64" },
  SSL_SESSION_free: { parameters: ["pointer"], result: "void" },
} as const;

const CRYPTO_SYMBOLS = {
  OPENSSL_sk_num: { parameters: ["pointer"], result: "i32" },
} as const;

const raw = LIBSSL && {
  ...Deno.dlopen("libssl.so.3", SYMBOLS).symbols,
  ...Deno.dlopen("libcrypto.so.3", CRYPTO_SYMBOLS).symbols,
};

/** From `openssl/ssl.h`. */
const CTRL_MAX_SEND_FRAGMENT = 52;
const CTRL_SERVER_NAME = 55;
const CTRL_MAX_VERSION = 124;
const OP_NO_TICKET = 1n << 14n;
const OP_NO_RENEGOTIATION = 1n << 30n;

/** Sessions whose contexts have its `library` can be asked for all this. */
export function rawSsl(): RawSsl {
  return new RawSsl();
}

/** See the module description. */
export class RawSsl {
  readonly library: LibSsl = {
    ...LIBSSL!,
    SSL_new: (context) => {
      const ssl = LIBSSL!.SSL_new(context);
      this.#last = ssl;
      return ssl;
    },
  };
  #last: Deno.PointerValue = null;
  readonly #ssl = new Map<SecureSession, Deno.PointerValue>();

  /** Both ends; `localhost` is what the client expects. */
  pair(client: SecureContext, server: SecureContext): SecurePair {
    return this.pairOf(
      this.session(client, { serverName: "localhost" }),
      this.session(server),
    );
  }

  session(
    context: SecureContext,
    peer?: { readonly serverName?: string },
  ): SecureSession {
    const session = new SecureSession(context, peer);
    if (context.library === this.library) this.#ssl.set(session, this.#last);
    return session;
  }

  pairOf(client: SecureSession, server: SecureSession): SecurePair {
    return new SecurePair(client, server);
  }

  limitVersion({ pointer }: SecureContext, version: number): void {
    this.#control(pointer, CTRL_MAX_VERSION, BigInt(version));
  }

  /** Long messages of TLS's own are sent in pieces from now on. */
  fragment({ pointer }: SecureContext, bytes: number): void {
    this.#control(pointer, CTRL_MAX_SEND_FRAGMENT, BigInt(bytes));
  }

  /** As most servers, it gives tickets. */
  giveTickets({ pointer }: SecureContext, count: number): void {
    raw!.SSL_CTX_clear_options(pointer, OP_NO_TICKET);
    LIBSSL!.SSL_CTX_set_num_tickets(pointer, BigInt(count));
  }

  mayRenegotiate({ pointer }: SecureContext): void {
    raw!.SSL_CTX_clear_options(pointer, OP_NO_RENEGOTIATION);
  }

  versionOf(session: SecureSession): number {
    return raw!.SSL_version(this.#of(session));
  }

  /** How many certificates the server showed. */
  chainLength(session: SecureSession): number {
    return raw!.OPENSSL_sk_num(
      raw!.SSL_get_peer_cert_chain(this.#of(session)),
    );
  }

  /** The next write begins with new keys, and asks the peer for new ones. */
  updateKeys(session: SecureSession): void {
    raw!.SSL_key_update(this.#of(session), 1);
    LIBSSL!.ERR_clear_error(); // It may be about to send some already.
  }

  /** The next `doHandshake` asks for it. */
  renegotiate(session: SecureSession): void {
    raw!.SSL_renegotiate(this.#of(session));
  }

  /** `session` offers to go on where `from` was. */
  resume(from: SecureSession, session: SecureSession): void {
    const old = raw!.SSL_get1_session(this.#of(from));
    raw!.SSL_set_session(this.#of(session), old);
    raw!.SSL_SESSION_free(old);
  }

  isResumed(session: SecureSession): boolean {
    return raw!.SSL_session_reused(this.#of(session)) === 1;
  }

  /** @param name A C text. */
  sayServerName(name: Uint8Array<ArrayBuffer>): void {
    LIBSSL!.SSL_ctrl(this.#last, CTRL_SERVER_NAME, 0n, name);
  }

  #of(session: SecureSession): Deno.PointerValue {
    const ssl = this.#ssl.get(session);
    if (ssl === undefined) throw new TypeError("Not a session of this library");
    return ssl;
  }

  #control(context: Deno.PointerObject, command: number, value: bigint): void {
    LIBSSL!.SSL_CTX_ctrl(context, command, value, null);
  }
}

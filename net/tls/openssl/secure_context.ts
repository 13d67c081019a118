/**
 * What many TLS connections have in common: certificate and key, trusted
 * authorities, versions, suites and protocols.
 *
 * @module
 */

import { cText } from "../../libc/libc.ts";
import { lastSslError } from "./error_queue.ts";
import { handshakeCallbacks } from "./handshake_callbacks.ts";
import type { LibSsl } from "./library.ts";
import type { TlsMaterial } from "../trust/credentials.ts";
import { SslError } from "../trust/ssl_error.ts";
import { opensslCipherList } from "../trust/tls_options.ts";
import tls from "node:tls";
import type { SecureVersion } from "node:tls";

/** Which end it is, and its demands on the peer. */
export type SecureRole =
  /**
   * It verifies the server against `ca`, or without that against the public
   * authorities, and by the names that a session expects. `isUnverified`: it
   * accepts any server, whose identity is then not proven.
   */
  | { readonly kind: "client"; readonly isUnverified?: boolean }
  | {
    readonly kind: "server";
    readonly clientCertificate: "required" | "optional" | "none";
  };

/** The parts of a context. */
export interface SecureContextOptions {
  readonly role: SecureRole;
  readonly material: TlsMaterial;
  /** In order of preference. */
  readonly alpn: readonly string[];
  readonly minVersion: SecureVersion;
  /** By Go's names; absent: all that this program supports. */
  readonly tls12Suites?: readonly string[] | undefined;
}

/** From `openssl/ssl.h`. */
const Ctrl = {
  MODE: 33,
  CLEAR_MODE: 78,
  SESSION_CACHE_MODE: 44,
  SERVERNAME_CALLBACK: 53,
  CHAIN_CERTIFICATE: 89,
  MIN_PROTOCOL_VERSION: 123,
} as const;
const TLS12 = 0x303n;
const TLS13 = 0x304n;
/**
 * RELEASE_BUFFERS: a quiet link keeps 34 KiB less. NO_AUTO_CHAIN: the chain
 * sent is the file's, not one made of the authorities, for which each handshake
 * would verify it. ACCEPT_MOVING_WRITE_BUFFER: a writer that finds no room may
 * copy its bytes.
 */
const MODES = 0x10n | 0x8n | 0x2n;
/** AUTO_RETRY: each message of TLS's own is a call, so that they can be counted. */
const CLEARED_MODES = 0x4n;
const SESSION_CACHE_OFF = 0n;
/**
 * NO_TICKET and no renegotiation: a client that connects again shows its
 * certificate again. CIPHER_SERVER_PREFERENCE.
 */
const OPTIONS = 1n << 14n | 1n << 30n | 1n << 22n;
const VERIFY_NONE = 0;
const VERIFY_PEER = 1;
const VERIFY_REQUIRED = 1 | 2;
/**
 * PARTIAL_CHAIN: every certificate in the bundle is trusted, as in Go and
 * rustls.
 */
const VERIFY_FLAGS = 0x80000n;
/** The library keeps a copy or a reference of its own. */
const KEEP_OWN = 1n;

/** What else this program speaks with: forward secrecy and AEAD (as rustls). */
const TLS12_LIST = "ECDHE+AESGCM:ECDHE+CHACHA20";
/** AES-128 before AES-256, as Go: a third less CPU per byte. */
const TLS13_SUITES =
  "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

export class SecureContext {
  readonly role: SecureRole;
  readonly pointer: Deno.PointerObject;
  /** As in a ClientHello: each with its length before it (RFC 7301 §3.1). */
  readonly alpn: Uint8Array<ArrayBuffer>;

  /** @throws {SslError} This material is not for this library. */
  constructor(readonly library: LibSsl, options: SecureContextOptions) {
    const { role, material, alpn, minVersion, tls12Suites } = options;
    this.role = role;
    this.alpn = alpnList(alpn);
    const pointer = library.SSL_CTX_new(
      role.kind === "client"
        ? library.TLS_client_method()
        : library.TLS_server_method(),
    );
    if (pointer === null) throw lastSslError(library);
    this.pointer = pointer;
    contexts.register(this, { library, pointer });
    try {
      this.#limit(minVersion, tls12Suites);
      this.#trust(material.ca);
      if (material.cert !== "") this.#show(material);
      this.#offer();
    } finally {
      // Or the next session would take it for its own (SSL_get_error(3)).
      library.ERR_clear_error();
    }
  }

  #control(command: number, argument: bigint, pointer?: Deno.PointerObject) {
    return this.library.SSL_CTX_ctrl(
      this.pointer,
      command,
      argument,
      pointer ?? null,
    );
  }

  #limit(minVersion: SecureVersion, tls12Suites?: readonly string[]): void {
    const { library, pointer } = this;
    this.#control(Ctrl.MODE, MODES);
    this.#control(Ctrl.CLEAR_MODE, CLEARED_MODES);
    this.#control(Ctrl.SESSION_CACHE_MODE, SESSION_CACHE_OFF);
    library.SSL_CTX_set_options(pointer, OPTIONS);
    this.#check(library.SSL_CTX_set_num_tickets(pointer, 0n));
    const version = minVersion === "TLSv1.3" ? TLS13 : TLS12;
    this.#check(Number(this.#control(Ctrl.MIN_PROTOCOL_VERSION, version)));
    const list = tls12Suites === undefined
      ? TLS12_LIST
      : opensslCipherList(tls12Suites);
    this.#check(library.SSL_CTX_set_cipher_list(pointer, cText(list)));
    this.#check(library.SSL_CTX_set_ciphersuites(pointer, cText(TLS13_SUITES)));
  }

  #trust(ca: string): void {
    const { library, pointer, role } = this;
    const isServer = role.kind === "server";
    if (!isServer && role.isUnverified) {
      return library.SSL_CTX_set_verify(pointer, VERIFY_NONE, null);
    }
    const store = library.SSL_CTX_get_cert_store(pointer);
    const authorities = certificatesOf(
      library,
      ca === "" && !isServer ? publicAuthorities() : ca,
    );
    try {
      for (const authority of authorities) {
        // It counts its own references.
        this.#check(library.X509_STORE_add_cert(store, authority));
        if (!isServer) continue;
        this.#check(library.SSL_CTX_add_client_CA(pointer, authority));
      }
    } finally {
      for (const authority of authorities) library.X509_free(authority);
    }
    library.X509_VERIFY_PARAM_set_flags(
      library.SSL_CTX_get0_param(pointer),
      VERIFY_FLAGS,
    );
    library.SSL_CTX_set_verify(
      pointer,
      verifyMode(role),
      handshakeCallbacks(library).verified,
    );
  }

  #show({ cert, key }: TlsMaterial): void {
    const { library, pointer } = this;
    const own = privateKeyOf(library, key);
    let chain: Deno.PointerObject[] = [];
    try {
      chain = certificatesOf(library, cert);
      const [leaf, ...others] = chain;
      if (leaf === undefined) throw new SslError("", "no certificate is there");
      this.#check(library.SSL_CTX_use_certificate(pointer, leaf));
      // Refuses a key that does not belong to the certificate.
      this.#check(library.SSL_CTX_use_PrivateKey(pointer, own));
      for (const other of others) {
        this.#check(
          Number(this.#control(Ctrl.CHAIN_CERTIFICATE, KEEP_OWN, other)),
        );
      }
    } finally {
      for (const certificate of chain) library.X509_free(certificate);
      library.EVP_PKEY_free(own);
    }
  }

  #offer(): void {
    const { library, pointer, role, alpn } = this;
    const callbacks = handshakeCallbacks(library);
    if (role.kind === "client") {
      // Zero is success here, and only here.
      if (library.SSL_CTX_set_alpn_protos(pointer, alpn, alpn.length) !== 0) {
        throw lastSslError(library);
      }
      return;
    }
    if (alpn.length > 0) {
      library.SSL_CTX_set_alpn_select_cb(pointer, callbacks.protocol, null);
    }
    library.SSL_CTX_callback_ctrl(
      pointer,
      Ctrl.SERVERNAME_CALLBACK,
      callbacks.serverName,
    );
  }

  #check(outcome: number): void {
    if (outcome <= 0) throw lastSslError(this.library);
  }
}

/** Connections count their own references, so a context may go before them. */
const contexts = new FinalizationRegistry<
  { readonly library: LibSsl; readonly pointer: Deno.PointerObject }
>(({ library, pointer }) => library.SSL_CTX_free(pointer));

function verifyMode(role: SecureRole): number {
  if (role.kind === "client") return VERIFY_PEER;
  switch (role.clientCertificate) {
    case "required":
      return VERIFY_REQUIRED;
    case "optional":
      return VERIFY_PEER;
    case "none":
      return VERIFY_NONE;
  }
}

function alpnList(protocols: readonly string[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const names = protocols.map((protocol) => encoder.encode(protocol));
  return new Uint8Array(names.flatMap((name) => [name.length, ...name]));
}

/** What `read` makes of a text, as a file of the library's. */
function readText<T>(
  library: LibSsl,
  text: string,
  read: (file: Deno.PointerObject) => T,
): T {
  const bytes = new TextEncoder().encode(text);
  // The library copies them, so our memory need not stay in place.
  const file = library.BIO_new(library.BIO_s_mem());
  if (file === null) throw lastSslError(library);
  try {
    if (bytes.length > 0) library.BIO_write(file, bytes, bytes.length);
    return read(file);
  } finally {
    library.BIO_free(file);
  }
}

/**
 * All certificates of a text; each is the caller's to free.
 *
 * @throws {SslError} One is damaged, and later ones would be missing.
 */
function certificatesOf(
  library: LibSsl,
  pem: string,
): Deno.PointerObject[] {
  return readText(library, pem, (file) => {
    const found: Deno.PointerObject[] = [];
    for (;;) {
      const next = library.PEM_read_bio_X509(file, null, null, null);
      if (next === null) break;
      found.push(next);
    }
    if ((library.ERR_peek_last_error() & PACKED) === NO_FURTHER_BLOCK) {
      library.ERR_clear_error();
      return found;
    }
    for (const certificate of found) library.X509_free(certificate);
    throw lastSslError(library);
  });
}

/** From `openssl/err.h`: the library's number, and its reason. */
const PACKED = 0x7fff_ffffn;
/** PEM_R_NO_START_LINE of ERR_LIB_PEM. */
const NO_FURTHER_BLOCK = 9n << 23n | 108n;

/** An empty password, or OpenSSL would prompt for one on the terminal. */
const NO_PASSWORD = cText("");

/** The key of a text; the caller's to free. @throws {SslError} */
function privateKeyOf(library: LibSsl, pem: string): Deno.PointerObject {
  const key = readText(
    library,
    pem,
    (file) => library.PEM_read_bio_PrivateKey(file, null, null, NO_PASSWORD),
  );
  if (key === null) throw new SslError("", "no key that can be used");
  return key;
}

let known: string | undefined;

/**
 * Read once; files that change count from the next start.
 *
 * @returns PEM.
 * @throws {Deno.errors.NotCapable} A program that embeds this one does not
 *   allow it: the platform's TLS needs no list from here.
 */
function publicAuthorities(): string {
  return known ??= read();
}

function read(): string {
  // Queried first, because an attempt without the permission would prompt.
  if (Deno.permissions.querySync({ name: "env" }).state !== "granted") {
    throw new Deno.errors.NotCapable("the environment may not be read");
  }
  const listed = tls.getCACertificates("default");
  // The platform trusts it, and leaves it out of that list.
  const file = Deno.env.get("DENO_CERT") ?? "";
  const given = file === "" ? [] : [Deno.readTextFileSync(file)];
  return [...new Set([...listed, ...given])].join("\n");
}

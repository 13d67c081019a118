/**
 * This machine's OpenSSL, opened by FFI.
 *
 * The platform's own TLS either cannot request a client's certificate
 * (`Deno.listenTls`) or hands out every record in memory of its own and cannot
 * be made to wait (`node:tls`); lab/performance-notes.md has what that costs.
 * This library has no socket and no thread: bytes go in and come out.
 *
 * It must be version 3 or later, which all maintained distributions ship and
 * patch. Without it, or without permission for FFI, the platform's TLS is used.
 *
 * @module
 */

import { TLS } from "../../libc/choices.ts";

const SSL_SYMBOLS = {
  TLS_server_method: { parameters: [], result: "pointer" },
  TLS_client_method: { parameters: [], result: "pointer" },
  SSL_CTX_new: { parameters: ["pointer"], result: "pointer" },
  SSL_CTX_free: { parameters: ["pointer"], result: "void" },
  // `larg` and `parg`: most setters of the manual are macros over this one.
  SSL_CTX_ctrl: {
    parameters: ["pointer", "i32", "i64", "pointer"],
    result: "i64",
  },
  SSL_CTX_callback_ctrl: {
    parameters: ["pointer", "i32", "function"],
    result: "i64",
  },
  SSL_CTX_set_options: { parameters: ["pointer", "u64"], result: "u64" },
  SSL_CTX_set_num_tickets: { parameters: ["pointer", "usize"], result: "i32" },
  SSL_CTX_set_cipher_list: {
    parameters: ["pointer", "buffer"],
    result: "i32",
  },
  SSL_CTX_set_ciphersuites: {
    parameters: ["pointer", "buffer"],
    result: "i32",
  },
  SSL_CTX_set_verify: {
    parameters: ["pointer", "i32", "function"],
    result: "void",
  },
  SSL_CTX_get_cert_store: { parameters: ["pointer"], result: "pointer" },
  SSL_CTX_get0_param: { parameters: ["pointer"], result: "pointer" },
  SSL_CTX_add_client_CA: {
    parameters: ["pointer", "pointer"],
    result: "i32",
  },
  SSL_CTX_use_certificate: {
    parameters: ["pointer", "pointer"],
    result: "i32",
  },
  SSL_CTX_use_PrivateKey: {
    parameters: ["pointer", "pointer"],
    result: "i32",
  },
  SSL_CTX_set_alpn_protos: {
    parameters: ["pointer", "buffer", "u32"],
    result: "i32",
  },
  SSL_CTX_set_alpn_select_cb: {
    parameters: ["pointer", "function", "pointer"],
    result: "void",
  },
  SSL_new: { parameters: ["pointer"], result: "pointer" },
  SSL_free: { parameters: ["pointer"], result: "void" },
  SSL_ctrl: { parameters: ["pointer", "i32", "i64", "buffer"], result: "i64" },
  SSL_set_bio: {
    parameters: ["pointer", "pointer", "pointer"],
    result: "void",
  },
  SSL_set_SSL_CTX: { parameters: ["pointer", "pointer"], result: "pointer" },
  SSL_set_accept_state: { parameters: ["pointer"], result: "void" },
  SSL_set_connect_state: { parameters: ["pointer"], result: "void" },
  SSL_set1_host: { parameters: ["pointer", "buffer"], result: "i32" },
  SSL_set_hostflags: { parameters: ["pointer", "u32"], result: "void" },
  SSL_get0_param: { parameters: ["pointer"], result: "pointer" },
  SSL_set_info_callback: {
    parameters: ["pointer", "function"],
    result: "void",
  },
  SSL_do_handshake: { parameters: ["pointer"], result: "i32" },
  SSL_read: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  SSL_write: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  SSL_key_update: { parameters: ["pointer", "i32"], result: "i32" },
  SSL_shutdown: { parameters: ["pointer"], result: "i32" },
  SSL_get_error: { parameters: ["pointer", "i32"], result: "i32" },
  SSL_get_servername: { parameters: ["pointer", "i32"], result: "pointer" },
  SSL_get0_alpn_selected: {
    parameters: ["pointer", "buffer", "buffer"],
    result: "void",
  },
  SSL_get1_peer_certificate: { parameters: ["pointer"], result: "pointer" },
  SSL_get_peer_cert_chain: { parameters: ["pointer"], result: "pointer" },
} as const;

const CRYPTO_SYMBOLS = {
  OPENSSL_init_crypto: { parameters: ["u64", "pointer"], result: "i32" },
  BIO_s_mem: { parameters: [], result: "pointer" },
  BIO_new: { parameters: ["pointer"], result: "pointer" },
  BIO_write: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  BIO_new_bio_pair: {
    parameters: ["buffer", "usize", "buffer", "usize"],
    result: "i32",
  },
  BIO_free: { parameters: ["pointer"], result: "i32" },
  BIO_ctrl: { parameters: ["pointer", "i32", "i64", "pointer"], result: "i64" },
  BIO_ctrl_wpending: { parameters: ["pointer"], result: "usize" },
  BIO_nread0: { parameters: ["pointer", "buffer"], result: "i32" },
  BIO_nread: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  BIO_nwrite0: { parameters: ["pointer", "buffer"], result: "i32" },
  BIO_nwrite: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  PEM_read_bio_X509: {
    parameters: ["pointer", "pointer", "pointer", "pointer"],
    result: "pointer",
  },
  PEM_read_bio_PrivateKey: {
    parameters: ["pointer", "pointer", "pointer", "buffer"],
    result: "pointer",
  },
  X509_free: { parameters: ["pointer"], result: "void" },
  EVP_PKEY_free: { parameters: ["pointer"], result: "void" },
  i2d_X509: { parameters: ["pointer", "buffer"], result: "i32" },
  X509_STORE_add_cert: { parameters: ["pointer", "pointer"], result: "i32" },
  X509_check_host: {
    parameters: ["pointer", "buffer", "usize", "u32", "pointer"],
    result: "i32",
  },
  X509_check_ip_asc: {
    parameters: ["pointer", "buffer", "u32"],
    result: "i32",
  },
  OPENSSL_sk_num: { parameters: ["pointer"], result: "i32" },
  OPENSSL_sk_value: { parameters: ["pointer", "i32"], result: "pointer" },
  X509_STORE_CTX_get_error: { parameters: ["pointer"], result: "i32" },
  X509_STORE_CTX_set_error: { parameters: ["pointer", "i32"], result: "void" },
  X509_STORE_CTX_get_error_depth: {
    parameters: ["pointer"],
    result: "i32",
  },
  X509_STORE_CTX_get0_cert: { parameters: ["pointer"], result: "pointer" },
  X509_VERIFY_PARAM_set_flags: {
    parameters: ["pointer", "u64"],
    result: "i32",
  },
  X509_VERIFY_PARAM_set1_ip_asc: {
    parameters: ["pointer", "buffer"],
    result: "i32",
  },
  X509_verify_cert_error_string: { parameters: ["i64"], result: "pointer" },
  ERR_get_error: { parameters: [], result: "u64" },
  ERR_peek_last_error: { parameters: [], result: "u64" },
  ERR_clear_error: { parameters: [], result: "void" },
  ERR_reason_error_string: { parameters: ["u64"], result: "pointer" },
  OpenSSL_version: { parameters: ["i32"], result: "pointer" },
  OpenSSL_version_num: { parameters: [], result: "u64" },
} as const;

/** The functions there are. */
export type LibSsl =
  & Deno.DynamicLibrary<typeof SSL_SYMBOLS>["symbols"]
  & Deno.DynamicLibrary<typeof CRYPTO_SYMBOLS>["symbols"];

/** `MAJOR` of `OPENSSL_VERSION_NUMBER`: MNN00PP0. */
const VERSION_MIN = 0x3000_0000n;

let libssl: LibSsl | undefined | "unavailable";

/**
 * The library, opened at the first call; `undefined`: it cannot be used here.
 */
export function openLibssl(): LibSsl | undefined {
  libssl ??= load() ?? "unavailable";
  return libssl === "unavailable" ? undefined : libssl;
}

function load(): LibSsl | undefined {
  if (Deno.build.os !== "linux" || TLS.word === "platform") return undefined;
  // Queried first, because an attempt without the permission would prompt.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return undefined;
  }
  try {
    const crypto = Deno.dlopen("libcrypto.so.3", CRYPTO_SYMBOLS).symbols;
    // Called before any other function of the library, which would initialize
    // itself without it.
    crypto.OPENSSL_init_crypto(NO_ATEXIT, null);
    const ssl = Deno.dlopen("libssl.so.3", SSL_SYMBOLS).symbols;
    if (crypto.OpenSSL_version_num() < VERSION_MIN) return undefined;
    return { ...crypto, ...ssl };
  } catch {
    return undefined; // None on this machine, or another one.
  }
}

/**
 * OPENSSL_INIT_NO_ATEXIT: the library does not free its memory when the process
 * ends; otherwise threads of the platform that end later would free it a second
 * time (OPENSSL_init_crypto(3)).
 */
const NO_ATEXIT = 0x80000n;

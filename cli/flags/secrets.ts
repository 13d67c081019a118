/**
 * Texts without the secrets that may stand in them.
 *
 * @module
 */

import { withoutTokens } from "../../proto/identity/join_token.ts";

const HIDDEN = "(hidden)";

/** PEM of a key, whole or cut. */
const KEY =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/** `user:password@` of a URL. */
const USER_INFO = /(\b[a-z][a-z0-9+.-]*:\/\/)[^/\s"'@]+@/gi;

/** The value of a header, a field or a flag whose name says that it is secret. */
const NAMED = new RegExp(
  "((?:authorization|cookie|password|passwd|secret|token|api[-_]?key)" +
    "\\\\*[\"']?\\s*[:=]\\s*\\\\*[\"']?)(?:(?:bearer|basic)\\s+)?" +
    "[^\\s\"',;&\\\\]+",
  "gi",
);

/** A header's scheme with what is behind it, without its name. */
const SCHEME = /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi;

/** Three parts of base64url: JWT, such as a ServiceAccount's. */
const JWT = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g;

/** 32 bytes or more in hex alone, as admin tokens are. */
const HEX = /\b[0-9a-f]{64,}\b/gi;

/** Fields whose value is a secret, whatever it looks like. */
const SECRET_FIELD =
  /^(?:authorization|cookie|pass(?:word|wd)?|secret|token|(?:private|api)?key)$/i;

/** For `JSON.stringify`: values without secrets. */
export function hideSecrets(field: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  return SECRET_FIELD.test(field) ? HIDDEN : withoutSecrets(value);
}

/** A URL's user and password are left out. */
export function withoutUrlSecrets(text: string): string {
  return text.replaceAll(USER_INFO, `$1${HIDDEN}@`);
}

/**
 * A text of any kind without what looks like a secret. It would rather hide too
 * much: fingerprints are hidden as well.
 */
export function withoutSecrets(text: string): string {
  return withoutTokens(withoutUrlSecrets(text))
    .replaceAll(KEY, HIDDEN)
    .replaceAll(JWT, HIDDEN)
    .replaceAll(NAMED, `$1${HIDDEN}`)
    .replaceAll(SCHEME, `$1 ${HIDDEN}`)
    .replaceAll(HEX, HIDDEN);
}

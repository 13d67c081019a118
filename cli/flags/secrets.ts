/**
 * Texts without the secrets that may stand in them.
 *
 * @module
 */

import { withoutTokens } from "../../proto/identity/join_token.ts";

/** The text in a secret's place. */
export const HIDDEN = "(hidden)";

/** PEM of a key, whole or cut. */
const KEY =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;

/** The end of a key whose beginning is not there: a log is cut anywhere. */
const KEY_END = /-----END [A-Z ]*PRIVATE KEY-----/g;
const KEY_LETTER = /[A-Za-z0-9+/=\s\\]/;

/** PEM in base64, as keys are in kubeconfigs. */
const PACKED_KEY = /\bLS0tLS1CRUdJTi[\w+/=]+/g;

/** `user:password@` of a URL; passwords with `@` and `/` are wrong, and common. */
const USER_INFO =
  /(\b[a-z][a-z0-9+.-]*:\/\/)(?:[^/\s"'@:]{0,200}:(?!\d+[/?#])[^\s"',]{0,300}|[^/\s"']{0,300})@/gi;

const SECRET_NAME =
  "(?:authorization|cookie|password|passwd|passphrase|secret|token|" +
  "(?:api|access|private|client)[-_]?key(?:[-_]?data)?|_headers)";

/** In quotes with their content, or up to the next blank. */
const VALUE = "(?:(\"|')(?:(?!\\2)[^\\\\\n]|\\\\[^\n])*\\2|" +
  "(?![[{])[^\\s\"',;&\\\\]+)";

/** The value of a header, a field or a flag whose name marks it as secret. */
const NAMED = new RegExp(
  `(${SECRET_NAME}\\\\*["']?\\s*[:=]\\s*(?:\\\\+["'])?)` +
    `(?:(?:bearer|basic)\\s+)?${VALUE}`,
  "gi",
);

/** The same of a flag with a blank behind its name. */
const FLAG = new RegExp(`(--[\\w-]*${SECRET_NAME}\\s+)${VALUE}`, "gi");

/** Quotes stay quotes, so that JSON stays valid. */
function hiddenValue(_match: string, name: string, quote = ""): string {
  return name + quote + HIDDEN + quote;
}

/** The same where people say it, and of `sshpass` and its like. */
const SPOKEN = new RegExp(`(\\bpassphrase\\s+|(?<!\\S)-p\\s+)${VALUE}`, "gi");

/** Signatures that make a URL usable for every holder: object stores, CDNs. */
const SIGNED =
  /([?&](?:sig|signature|x-(?:amz|goog)-(?:signature|credential))=)[^&\s"'\\]+/gi;

/** Keys that say by their first letters whose they are: AWS, GitHub, GitLab. */
const BRANDED =
  /\b(?:(?:AKIA|ASIA)[A-Z0-9]{12,}|gh[opsur]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,})/g;

/** All that a browser keeps. */
const COOKIES = /(\bcookie:[ \t]*)[^\n"']+/gi;

/** The scheme of a header with the credentials, without the header's name. */
const SCHEME = /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi;

/** Three parts of base64url: JWT, such as a ServiceAccount's. */
const JWT = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g;

/** 32 bytes or more in hex alone, as admin tokens are. */
const HEX = /\b[0-9a-f]{64,}\b/gi;

/** Fields whose value is always secret. */
const SECRET_FIELD =
  /^(?:authorization|cookie|pass(?:word|wd)?|secret|token|(?:private|api)?key)$/i;

/** For `JSON.stringify`: values without secrets. */
export function hideSecrets(field: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  return SECRET_FIELD.test(field) ? HIDDEN : withoutSecrets(value);
}

/**
 * A text of any kind without what looks like a secret. It would rather hide too
 * much: fingerprints are hidden as well.
 */
export function withoutSecrets(text: string): string {
  const keyless = withoutKeyEnds(text);
  return withoutTokens(keyless.replaceAll(USER_INFO, `$1${HIDDEN}@`))
    .replaceAll(KEY, HIDDEN)
    .replaceAll(PACKED_KEY, HIDDEN)
    .replaceAll(COOKIES, `$1${HIDDEN}`)
    .replaceAll(FLAG, hiddenValue)
    .replaceAll(SPOKEN, hiddenValue)
    .replaceAll(SIGNED, `$1${HIDDEN}`)
    .replaceAll(BRANDED, HIDDEN)
    .replaceAll(JWT, HIDDEN)
    .replaceAll(NAMED, hiddenValue)
    .replaceAll(SCHEME, `$1 ${HIDDEN}`)
    .replaceAll(HEX, HIDDEN);
}

/**
 * Removes text before the end of a key, as far as it may be part of the key.
 */
function withoutKeyEnds(text: string): string {
  let kept = "";
  let from = 0;
  for (const { index, 0: end } of text.matchAll(KEY_END)) {
    let begin = index;
    while (begin > from && KEY_LETTER.test(text[begin - 1]!)) begin--;
    // A whole key is found by its beginning.
    const isWhole = text.slice(0, begin).endsWith("PRIVATE KEY-----");
    kept += text.slice(from, isWhole ? index : begin);
    kept += isWhole ? end : HIDDEN;
    from = index + end.length;
  }
  return kept + text.slice(from);
}

/**
 * The one line that lets a node join: `tnl1.<CA>.<id>.<secret>`.
 *
 * It carries the hash of the server's CA key, so that a node can verify the
 * server before it sends the secret. Knows nothing of how tokens are kept.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/** Version and first word of a token. */
const PREFIX = "tnl1";
/** SHA-256, base64url without padding. */
const PIN = /^[A-Za-z0-9_-]{43}$/;
/** 50 bits in base32: a name for lists and files, not a secret. */
const ID = /^[a-z2-7]{10}$/;
/** 128 bits, base64url without padding. */
const SECRET = /^[A-Za-z0-9_-]{22}$/;

/** The parts of a token. */
export interface JoinToken {
  /** SHA-256 of the CA's SubjectPublicKeyInfo, base64url. */
  readonly authorityPin: string;
  readonly id: string;
  /** Never to be logged. */
  readonly secret: string;
}

/** Thrown for texts that are no token. Does not repeat the text. */
export class JoinTokenError extends Error {
  override readonly name = "JoinTokenError";
  readonly tunnelCode: Code = "TUN302";
}

/** @throws {JoinTokenError} It names the part that is wrong. */
export function parseJoinToken(text: string): JoinToken {
  const parts = text.trim().split(".");
  const [prefix, authorityPin = "", id = "", secret = ""] = parts;
  const problem = prefix !== PREFIX
    ? `it does not begin with "${PREFIX}."`
    : parts.length !== 4
    ? `it has ${parts.length} parts`
    : !PIN.test(authorityPin)
    ? "its second part is no hash of a CA"
    : !ID.test(id)
    ? "its third part is no token id"
    : !SECRET.test(secret)
    ? "its last part is no secret (was the line cut?)"
    : undefined;
  if (problem === undefined) return { authorityPin, id, secret };
  throw new JoinTokenError(
    `Cannot use the join token: ${problem}; wanted the whole line that ` +
      "`tunnel token create` printed, tnl1.<CA>.<id>.<secret>",
  );
}

/** A token, whole or cut: by its first word, or by its last three. */
const IN_TEXT = /tnl1\.[\w.-]*|[\w-]{43}\.[a-z2-7]{10}\.[\w-]+/g;

/** Text to show, without tokens that were put into it by mistake. */
export function withoutTokens(text: string): string {
  return text.replaceAll(IN_TEXT, `${PREFIX}.…`);
}

/** Whether `text` can name a token: 10 letters of base32. */
export function isTokenId(text: string): boolean {
  return ID.test(text);
}

/** The line for people to carry. */
export function formatJoinToken(token: JoinToken): string {
  return [PREFIX, token.authorityPin, token.id, token.secret].join(".");
}

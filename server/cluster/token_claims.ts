/**
 * What a token says of itself. Nothing of it is proven: it serves only to know,
 * before the API server is asked, that it would say no.
 *
 * @module
 */

import { TOKEN_LENGTH_MAX } from "../../neighbours/kubernetes/token_file.ts";
import type { TokenRequirement } from "../options.ts";

/**
 * How far the clocks of this machine and the API server may be apart; a token is
 * not refused for less. Milliseconds.
 */
export const TOKEN_CLOCK_SKEW_MS: number = 10 * 60_000;

/** Names in a `sub`, before the namespace. */
const SERVICE_ACCOUNT = "system:serviceaccount:";

/** What is wrong with a token at a look. */
export type Flaw =
  /** It is of somebody else, as it says itself. */
  | { readonly kind: "other-user"; readonly username: string }
  /** It cannot be good; `why` is a part of a sentence. */
  | { readonly kind: "invalid"; readonly why: string };

/**
 * Why no API server would take `token` for what is wanted, if that can be seen.
 *
 * @param nowMs Since 1970.
 */
export function flawOf(
  token: string,
  { namespace, serviceAccount, audience }: TokenRequirement,
  nowMs: number,
): Flaw | undefined {
  const claims = claimsOf(token);
  if (claims === undefined) {
    return { kind: "invalid", why: "it is not a ServiceAccount's token" };
  }
  const { sub, aud, exp } = claims;
  if (typeof sub !== "string" || !sub.startsWith(SERVICE_ACCOUNT)) {
    return { kind: "invalid", why: "it names no ServiceAccount" };
  }
  if (sub !== `${SERVICE_ACCOUNT}${namespace}:${serviceAccount}`) {
    return { kind: "other-user", username: sub };
  }
  const audiences = typeof aud === "string" ? [aud] : aud;
  // Tokens out of a Secret name none; what they are good for it knows.
  if (Array.isArray(audiences) && !audiences.includes(audience)) {
    const why = `it is not meant for audience "${audience}"`;
    return { kind: "invalid", why };
  }
  const isOver = typeof exp === "number" &&
    exp * 1_000 < nowMs - TOKEN_CLOCK_SKEW_MS;
  return isOver ? { kind: "invalid", why: "it has expired" } : undefined;
}

/** Claims of a JSON Web Token, signed with whatever (RFC 7515 §3.1). */
function claimsOf(token: string): Record<string, unknown> | undefined {
  if (token.length > TOKEN_LENGTH_MAX) return undefined;
  const parts = token.split(".");
  if (parts.length !== 3 || parts.includes("")) return undefined;
  const [header, payload] = parts.map(objectOf);
  return typeof header?.["alg"] === "string" ? payload : undefined;
}

function objectOf(part: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.fromBase64(part, { alphabet: "base64url" });
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    return isObject ? value as Record<string, unknown> : undefined;
  } catch {
    // Anything may be in there: neither base64 nor JSON.
    return undefined;
  }
}

/**
 * Tokens that look like those of ServiceAccounts, signed by nobody.
 *
 * @module
 */

/** A token with exactly these claims; another `mark` makes it another token. */
export function tokenSaying(
  claims: Readonly<Record<string, unknown>>,
  mark = "signature",
): string {
  return [{ alg: "RS256", kid: "k" }, claims]
    .map((part) => encoded(JSON.stringify(part)))
    .concat(encoded(mark)).join(".");
}

function encoded(text: string): string {
  return new TextEncoder().encode(text)
    .toBase64({ alphabet: "base64url", omitPadding: true });
}

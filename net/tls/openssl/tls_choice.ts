/**
 * Which TLS is used: the operators' way back, as `TUNNEL_SOCKETS` is for sockets.
 *
 * @module
 */

/** The environment variable that chooses. */
export const TLS_VARIABLE = "TUNNEL_TLS";

/** Its allowed values; without one, the last possible kind is used. */
export const TLS_CHOICES = ["platform", "openssl"] as const;

/** One of {@linkcode TLS_CHOICES}. */
export type TlsChoice = typeof TLS_CHOICES[number];

/** Whether a text is one of them. */
export function isTlsChoice(text: string): text is TlsChoice {
  return (TLS_CHOICES as readonly string[]).includes(text);
}

/** The choice of this process; `undefined`: none, or none that is known. */
export function tlsChoice(): TlsChoice | undefined {
  // A program that embeds us may not allow it; an attempt would prompt.
  const permission = { name: "env", variable: TLS_VARIABLE } as const;
  if (Deno.permissions.querySync(permission).state !== "granted") {
    return undefined;
  }
  const text = Deno.env.get(TLS_VARIABLE) ?? "";
  return isTlsChoice(text) ? text : undefined;
}

/**
 * Which TLS is used: the operators' way back, as `TUNNEL_SOCKETS` is for sockets.
 *
 * @module
 */

/** The environment variable that says so. */
export const TLS_VARIABLE = "TUNNEL_TLS";

/** What may stand in it; without it the last one that is possible is used. */
export const TLS_CHOICES = ["platform", "openssl"] as const;

/** One of {@linkcode TLS_CHOICES}. */
export type TlsChoice = typeof TLS_CHOICES[number];

/** Whether a text is one of them. */
export function isTlsChoice(text: string): text is TlsChoice {
  return (TLS_CHOICES as readonly string[]).includes(text);
}

/** What this process was told; `undefined`: nothing, or nothing that is known. */
export function tlsChoice(): TlsChoice | undefined {
  // Who embeds us may not let us look; an attempt would prompt.
  const asked = { name: "env", variable: TLS_VARIABLE } as const;
  if (Deno.permissions.querySync(asked).state !== "granted") return undefined;
  const text = Deno.env.get(TLS_VARIABLE) ?? "";
  return isTlsChoice(text) ? text : undefined;
}

/**
 * Which sockets of this machine are used: the operators' way back.
 *
 * It is not a flag, because every command has sockets, and a fault of a kernel
 * or a container concerns all of them.
 *
 * @module
 */

/** The environment variable that chooses. */
export const SOCKETS_VARIABLE = "TUNNEL_SOCKETS";

/** Its allowed values; without one, the last possible kind is used. */
export const SOCKET_CHOICES = ["platform", "thread", "ring"] as const;

/** One of {@linkcode SOCKET_CHOICES}. */
export type SocketChoice = typeof SOCKET_CHOICES[number];

/** Whether a text is one of them. */
export function isSocketChoice(text: string): text is SocketChoice {
  return (SOCKET_CHOICES as readonly string[]).includes(text);
}

let chosen: SocketChoice | undefined | "unread" = "unread";

/**
 * The choice of this process; `undefined`: none, or none that is known. Read
 * once.
 */
export function socketChoice(): SocketChoice | undefined {
  if (chosen === "unread") chosen = read();
  return chosen;
}

function read(): SocketChoice | undefined {
  // A program that embeds us may not allow it; an attempt would prompt.
  const permission = { name: "env", variable: SOCKETS_VARIABLE } as const;
  if (Deno.permissions.querySync(permission).state !== "granted") {
    return undefined;
  }
  const text = Deno.env.get(SOCKETS_VARIABLE) ?? "";
  return isSocketChoice(text) ? text : undefined;
}

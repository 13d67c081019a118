/**
 * Which sockets of this machine and which TLS are used: the operators' way back.
 *
 * They are no flags, because every command has sockets, and a fault of a kernel
 * or a container concerns all of them.
 *
 * @module
 */

/** The kinds of sockets; without a choice, the last possible one is used. */
export type SocketChoice = "platform" | "thread" | "ring";

/** Whose TLS. */
export type TlsChoice = "platform" | "openssl";

/** An environment variable that chooses one of a few words. */
export class Choice<Word extends string> {
  #known: { readonly word: Word | undefined } | undefined;

  constructor(readonly variable: string, readonly words: readonly Word[]) {}

  /** The choice of this process; `undefined`: none that is known. Read once. */
  get word(): Word | undefined {
    return (this.#known ??= { word: this.#read() }).word;
  }

  #read(): Word | undefined {
    // A program that embeds us may not allow it; an attempt would prompt.
    const permission = { name: "env", variable: this.variable } as const;
    const { state } = Deno.permissions.querySync(permission);
    const text = state === "granted" ? Deno.env.get(this.variable) : undefined;
    return this.words.find((word) => word === text);
  }
}

/** `TUNNEL_SOCKETS`. */
export const SOCKETS: Choice<SocketChoice> = new Choice(
  "TUNNEL_SOCKETS",
  ["platform", "thread", "ring"],
);

/** `TUNNEL_TLS`. */
export const TLS: Choice<TlsChoice> = new Choice(
  "TUNNEL_TLS",
  ["platform", "openssl"],
);

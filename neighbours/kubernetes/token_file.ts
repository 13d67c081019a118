/**
 * A bearer token in a file that somebody else replaces from time to time, as
 * kubelets do with the tokens of ServiceAccounts.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { REREAD_MS } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";

/** Largest token that is taken for one: a header has to carry it. */
export const TOKEN_LENGTH_MAX = 16 * 1024;

/**
 * Reads a token now. White space around it is dropped: many tools end files
 * with a line feed, which no header can carry.
 *
 * @throws {KubernetesConfigError} When there is none, or none that can be sent.
 */
export async function readToken(path: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    throw new KubernetesConfigError(
      `Cannot read token ${path}: ${problemOf(error)}`,
      { cause: error },
    );
  }
  const token = text.trim();
  if (token === "") {
    throw new KubernetesConfigError(
      `Cannot use token ${path}: the file is empty; wait until it is written, ` +
        "or write it",
    );
  }
  if (token.length > TOKEN_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(token)) {
    throw new KubernetesConfigError(
      `Cannot use token ${path}: wanted one line of at most ` +
        `${TOKEN_LENGTH_MAX} visible ASCII characters; name the file that ` +
        "holds the token alone",
    );
  }
  return token;
}

/** The same, read at most once a minute. */
export class TokenFile {
  #token: string | undefined;
  #readMs = -Infinity;

  constructor(private readonly path: string, private readonly clock: Clock) {}

  /**
   * The token that was last read well: the one in hand may serve for as long
   * as the file is being replaced.
   *
   * @throws {KubernetesConfigError} When none was ever read.
   */
  async current(): Promise<string> {
    const token = this.#token;
    if (token !== undefined && this.clock.now() - this.#readMs < REREAD_MS) {
      return token;
    }
    this.#readMs = token === undefined ? -Infinity : this.clock.now();
    try {
      this.#token = await readToken(this.path);
      this.#readMs = this.clock.now();
    } catch (error) {
      if (!(error instanceof KubernetesConfigError)) throw error;
      if (token === undefined) throw error;
    }
    return this.#token!;
  }

  /** The next look reads the file. */
  expire(): void {
    this.#readMs = -Infinity;
  }
}

function problemOf(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) {
    return "there is no such file; check the path, and in a Pod that its " +
      "ServiceAccount's token is mounted";
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return "permission denied; check its owner and mode";
  }
  return messageOf(error);
}

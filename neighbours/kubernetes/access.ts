/**
 * The address of an API server and the credentials for it, from either source:
 * the Pod this process runs in, or a kubeconfig file.
 *
 * Everything here may change under a running process (tokens and certificates
 * rotate), so callers ask again before each request; the implementation decides
 * how often it reads the files.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { NeighbourConfigError, REREAD_MS } from "../tls_files.ts";

/** The credentials of a request. All absent: none. */
export interface Credential {
  /** Value of the `authorization` header. */
  readonly authorization?: string;
  /** A certificate chain and its key, PEM. */
  readonly keyPair?: { readonly cert: string; readonly key: string };
}

/** Empty texts are absent. */
export function credentialOf(
  token: string | undefined,
  { cert, key }: { readonly [Part in "cert" | "key"]?: string | undefined },
): Credential {
  return {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(cert && key ? { keyPair: { cert, key } } : {}),
  };
}

export interface KubernetesAccess {
  /** Such as `https://10.96.0.1:443`, without a slash at the end. */
  readonly server: string;
  /** The default namespace. */
  readonly namespace: string;
  /** Credentials for the HTTP proxy, if the configuration names one. */
  readonly proxyUrl?: string | undefined;
  /**
   * PEM of the CAs that the server's certificate may be of; absent when public
   * ones are meant.
   */
  authority(): string | undefined;
  /** @throws {NeighbourConfigError} */
  credential(): Promise<Credential>;
  /** The server answered 401: the next credentials must be read anew. */
  rejected(): void;
}

// A bearer token in a file that another program replaces from time to time, as
// kubelets do with the tokens of ServiceAccounts.

/** Largest token that is taken for one: a header has to carry it. */
export const TOKEN_LENGTH_MAX = 16 * 1024;

/**
 * Reads a token now. White space around it is dropped: many tools end files
 * with a line feed, which no header can carry.
 *
 * @throws {NeighbourConfigError} When there is no token, or it cannot be sent.
 */
export async function readToken(path: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    throw new NeighbourConfigError(
      `Cannot read token ${path}: ${tokenProblem(error)}`,
      { cause: error },
    );
  }
  const token = text.trim();
  if (token === "") {
    throw new NeighbourConfigError(
      `Cannot use token ${path}: the file is empty; wait until it is written, ` +
        "or write it",
    );
  }
  if (token.length > TOKEN_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(token)) {
    throw new NeighbourConfigError(
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
   * @throws {NeighbourConfigError} When none was ever read.
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
      if (!(error instanceof NeighbourConfigError)) throw error;
      if (token === undefined) throw error;
    }
    return this.#token!;
  }

  /** The next look reads the file. */
  expire(): void {
    this.#readMs = -Infinity;
  }
}

function tokenProblem(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) {
    return "there is no such file; check the path, and in a Pod that its " +
      "ServiceAccount's token is mounted";
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return "permission denied; check its owner and mode";
  }
  return messageOf(error);
}

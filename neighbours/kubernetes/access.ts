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
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import { KubernetesConfigError } from "./errors.ts";
import { messageOf } from "../../platform/errors/error_code.ts";

/** How long something read from a file is believed before it is read again. */
export const REREAD_MS = 60_000;

/** The credentials of a request. All absent: none. */
export interface Credential {
  /** Value of the `authorization` header. */
  readonly authorization?: string;
  /** A certificate chain and its key, PEM. */
  readonly keyPair?: { readonly cert: string; readonly key: string };
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
  /** @throws {KubernetesConfigError} */
  credential(): Promise<Credential>;
  /** The server answered 401: the next credentials must be read anew. */
  rejected(): void;
}

// The CA and the client certificate of an API server's client, from files that
// are looked at again once a minute.

export class TlsFiles {
  readonly #credentials: Credentials;
  #readMs: number;

  /** @throws {KubernetesConfigError} When a file cannot be used. */
  constructor(files: CredentialFiles, private readonly clock: Clock) {
    try {
      this.#credentials = Credentials.load(files);
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      throw new KubernetesConfigError(error.message, { cause: error });
    }
    this.#readMs = clock.now();
  }

  /** The last content that could be read. */
  get current(): TlsMaterial {
    const now = this.clock.now();
    if (now - this.#readMs < REREAD_MS) return this.#credentials.current;
    this.#readMs = now;
    // Those that cannot be read are read again in a minute; until then the
    // earlier ones are used unless the API server refuses them.
    return this.#credentials.latest();
  }

  /** The next look reads the files. */
  expire(): void {
    this.#readMs = -Infinity;
  }
}

// A bearer token in a file that another program replaces from time to time, as
// kubelets do with the tokens of ServiceAccounts.

/** Largest token that is taken for one: a header has to carry it. */
export const TOKEN_LENGTH_MAX = 16 * 1024;

/**
 * Reads a token now. White space around it is dropped: many tools end files
 * with a line feed, which no header can carry.
 *
 * @throws {KubernetesConfigError} When there is no token, or it cannot be sent.
 */
export async function readToken(path: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    throw new KubernetesConfigError(
      `Cannot read token ${path}: ${tokenProblem(error)}`,
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

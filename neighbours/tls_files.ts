/**
 * How a client's certificate and the CA of its servers are read: from files that
 * another program may replace, looked at again once a minute.
 *
 * @module
 */

import type { Code } from "../proto/codes/codes.ts";
import type { Clock } from "../proto/sync/clock.ts";
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
  type TlsMaterial,
} from "../net/tls/trust/credentials.ts";

/** How a neighbour is to be reached is wrong. One sentence, with the remedy. */
export class NeighbourConfigError extends Error {
  override readonly name = "NeighbourConfigError";
  readonly tunnelCode: Code = "TUN101";
}

/** How old the content of files may get. */
export const REREAD_MS = 60_000;

export class TlsFiles {
  readonly #credentials: Credentials;
  #readMs: number;

  /** @throws {NeighbourConfigError} When a file cannot be used. */
  constructor(files: CredentialFiles, private readonly clock: Clock) {
    try {
      this.#credentials = Credentials.load(files);
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      throw new NeighbourConfigError(error.message, { cause: error });
    }
    this.#readMs = clock.now();
  }

  /** The last content that could be read. */
  get current(): TlsMaterial {
    const now = this.clock.now();
    if (now - this.#readMs < REREAD_MS) return this.#credentials.current;
    this.#readMs = now;
    // Those that cannot be read are read again in a minute; until then the
    // earlier ones are used unless the server refuses them.
    return this.#credentials.latest();
  }

  /** The next look reads the files. */
  expire(): void {
    this.#readMs = -Infinity;
  }
}

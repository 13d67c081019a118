/**
 * The CA and the client certificate of an API server's client, from files that
 * are looked at again once a minute.
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
import { REREAD_MS } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";

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

  /** What was last read well. */
  get current(): TlsMaterial {
    if (this.clock.now() - this.#readMs >= REREAD_MS) this.#readAgain();
    return this.#credentials.current;
  }

  /** The next look reads the files. */
  expire(): void {
    this.#readMs = -Infinity;
  }

  #readAgain(): void {
    this.#readMs = this.clock.now();
    try {
      this.#credentials.reload();
    } catch (error) {
      // Half of a replacement, most often: the next look comes in a minute, and
      // what is in hand serves until the API server says otherwise.
      if (!(error instanceof CredentialsError)) throw error;
    }
  }
}

/**
 * The token that a user and a password buy.
 *
 * etcd's simple tokens end after five minutes without use and with the member
 * that gave them; a client that shows an old one is refused and asks for another.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { AuthenticateRequest, AuthenticateResponse } from "./etcd_messages.ts";

/** Who we are to etcd. */
export interface EtcdUser {
  readonly name: string;
  readonly password: string;
}

/** Sends an `AuthenticateRequest`; gives the answer's bytes. */
export type Authenticate = (request: Uint8Array) => Promise<Uint8Array>;

export class AuthToken {
  /** Holds the password, so no debugger's print of this object may show it. */
  readonly #user: EtcdUser | undefined;
  #token: string | undefined;
  #asking: Promise<string> | undefined;

  /** @param user Absent: there is never a token. */
  constructor(user: EtcdUser | undefined) {
    this.#user = user;
  }

  /** Whether {@linkcode forget} and another try can help. */
  get canRenew(): boolean {
    return this.#user !== undefined;
  }

  /**
   * The token; empty when none is wanted.
   *
   * @throws {GrpcError} What etcd answers to a wrong password, or no answer.
   */
  async get(authenticate: Authenticate): Promise<string> {
    if (this.#user === undefined) return "";
    if (this.#token !== undefined) return this.#token;
    const { name, password } = this.#user;
    const request = AuthenticateRequest.encode({ name, password });
    this.#asking ??= this.#ask(authenticate, request).finally(() => {
      this.#asking = undefined;
    });
    return await this.#asking;
  }

  /** It was refused. A newer one stays. */
  forget(token: string): void {
    if (this.#token === token) this.#token = undefined;
  }

  async #ask(authenticate: Authenticate, request: Uint8Array): Promise<string> {
    try {
      const bytes = await authenticate(request);
      this.#token = AuthenticateResponse.decode(bytes).token;
    } catch (error) {
      // The cluster lets everybody in: then the user is nobody's business.
      if (
        !(error instanceof GrpcError) ||
        error.code !== StatusCode.FAILED_PRECONDITION ||
        !error.message.includes("authentication is not enabled")
      ) throw error;
      this.#token = "";
    }
    return this.#token;
  }
}

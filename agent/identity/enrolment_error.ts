/**
 * What may come of asking for a certificate: refusals that stay refusals, and
 * troubles that pass.
 *
 * @module
 */

import {
  NoServerError,
  type ServerAddress,
} from "../../net/dial/server_addresses.ts";
import type {
  CredentialFiles,
  Credentials,
} from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { LinkError, LinkRefusedError } from "../../proto/link/hello.ts";
import type { UpstreamIdentity } from "../../net/channel/server_upstream.ts";
import type { PeerServer } from "../../proto/link/link_messages.ts";

/** Asking again would be answered in the same way. One sentence. */
export class EnrolmentError extends Error {
  override readonly name = "EnrolmentError";

  /** As the server says; a call that was lost was not decided by it. */
  get tunnelCode(): Code {
    const { cause } = this;
    return tunnelCodeOf(cause) ?? (isPassing(cause) ? "TUN403" : "TUN320");
  }
}

/** The server at an address is not the one that made the token. */
export class PinError extends Error {
  override readonly name = "PinError";
  readonly tunnelCode: Code = "TUN205";
}

/** The server went before it said a word. */
export class UnheardError extends LinkError {
  override readonly tunnelCode: Code;

  /** @param cause What is known of it. */
  constructor(message: string, cause: Error | undefined) {
    super(message, { cause });
    this.tunnelCode = tunnelCodeOf(cause) ?? "TUN401";
  }
}

/** Statuses that only a person can change. */
const DEFINITE: ReadonlySet<StatusCode> = new Set([
  StatusCode.INVALID_ARGUMENT,
  StatusCode.NOT_FOUND,
  StatusCode.ALREADY_EXISTS,
  StatusCode.PERMISSION_DENIED,
  StatusCode.FAILED_PRECONDITION,
  StatusCode.OUT_OF_RANGE,
  StatusCode.UNIMPLEMENTED,
  StatusCode.UNAUTHENTICATED,
]);

/** Whether it is of no use to ask again, at any of the addresses. */
export function isDefinite(error: unknown): boolean {
  if (error instanceof NoServerError) return error.errors.every(isDefinite);
  return error instanceof EnrolmentError || error instanceof PinError ||
    error instanceof LinkRefusedError ||
    (error instanceof GrpcError && DEFINITE.has(error.code));
}

/**
 * Whether a server was there and went, or could not answer now: that tells
 * nothing of the next try, and a node that asks again with its key does no harm.
 */
export function isPassing(error: unknown): boolean {
  if (error instanceof NoServerError) return error.errors.some(isPassing);
  return error instanceof GrpcError && error.code === StatusCode.UNAVAILABLE ||
    error instanceof TlsHandshakeError && error.failure === "closed";
}

/** The sentence of an error, with a remedy that the server cannot know. */
export function sentenceOf(error: unknown): string {
  if (error instanceof GrpcError && error.code === StatusCode.UNIMPLEMENTED) {
    return "Cannot ask the server for a certificate: it has no identity of its " +
      "own (is it Konnectivity's, or does it run with --cluster-cert?); " +
      "start `tunnel server` with --state-dir, or give this agent --ca-cert, " +
      "--agent-cert and --agent-key";
  }
  return messageOf(error);
}

export interface LinkIdentity extends UpstreamIdentity {
  /** For TLS; the files exist. */
  readonly files: CredentialFiles;
  /** What servers' certificates must be for; absent: the address dialed. */
  readonly serverName?: string;
  /** Servers that an earlier process has learned of servers. */
  readonly learnedServers?: readonly PeerServer[];
  /** Saves them for the next process; absent: it learns them again. */
  keepServers?(servers: readonly PeerServer[]): void;
  /** Begins to look after what `credentials` has read from `files`. */
  start(credentials: Credentials): void;
  /** A promise settles when nothing more is written. */
  stop(): void | Promise<void>;
  /**
   * The present addresses of servers; empty: use those of the options.
   *
   * @throws One sentence.
   */
  findServers?(): Promise<readonly ServerAddress[] | undefined>;
  /**
   * A trusted server sends the authorities to trust from now on, PEM.
   *
   * @returns Ids of the authorities that are trusted now.
   */
  trust?(bundle: Uint8Array): Promise<readonly string[]>;
}

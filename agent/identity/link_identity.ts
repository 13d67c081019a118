/**
 * Who an agent is to its servers, when that is looked after: what links need to
 * know about it, and nothing of how it is come by.
 *
 * @module
 */

import type { PeerServer } from "../../proto/link/link_messages.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import type {
  CredentialFiles,
  Credentials,
} from "../../net/tls/trust/credentials.ts";

export interface LinkIdentity {
  /** For TLS; they are there. */
  readonly files: CredentialFiles;
  /** What servers' certificates must be for; absent: the address dialed. */
  readonly serverName?: string;
  /** Servers that an earlier process has learned of servers. */
  readonly learnedServers?: readonly PeerServer[];
  /** Keeps those for the next process; absent: it learns them anew. */
  keepServers?(servers: readonly PeerServer[]): void;
  /** Begins to look after what `credentials` has read from `files`. */
  start(credentials: Credentials): void;
  stop(): void;
  /** Before each link. @throws {Error} One sentence: why none can be made. */
  ready(): Promise<void>;
  /**
   * Where servers are now; nothing: where the options say.
   *
   * @throws As `ready`.
   */
  findServers?(): Promise<readonly ServerAddress[] | undefined>;
  /** A server ended a link attempt as one does that dislikes the certificate. */
  doubt?(): void;
  /**
   * A handshake failed: takes what another process may have put in place.
   *
   * @returns Whether something else is shown or trusted from now on.
   */
  lookAgain?(): boolean;
  /**
   * A server that is trusted says whom to trust from now on, PEM.
   *
   * @returns Ids of those that are trusted now.
   */
  trust?(bundle: Uint8Array): Promise<readonly string[]>;
}

/**
 * Who a node is, for routes that are taken in its name: what connections show and
 * trust, and who is told when that is of no use, or when a server can be asked.
 *
 * It refuses to know where an identity is kept, and how it is renewed.
 *
 * @module
 */

import type { TlsMaterial } from "../net/tls/trust/credentials.ts";
import type { StreamOpener } from "../proto/grpc/client.ts";

/** See the module description. */
export interface NodeIdentity {
  /** Sees to it that there is something good to show. @throws One sentence. */
  ready(): Promise<void>;
  /** For the next connection; behind `ready`. */
  readonly current: TlsMaterial;
  /**
   * A connection failed.
   *
   * @returns Whether something else is shown or trusted from now on, so that it
   *   is worth trying at once.
   */
  failed(error: unknown): boolean;
  /** Calls to a server are made over this connection, now. Cheap. */
  used(connection: CallConnection): void;
  /** Settles when what a server was asked is kept, or soon: before the end. */
  settled(): Promise<void>;
}

/** A connection, as far as an identity uses it. */
export interface CallConnection extends StreamOpener {
  readonly isUsable: boolean;
}

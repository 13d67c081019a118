/**
 * Who a node is, for routes that are taken in its name: what connections show and
 * trust, and who is told when that is of no use, or when a server can be asked.
 *
 * It refuses to know where an identity is kept, and how it is renewed.
 *
 * @module
 */

import type { UpstreamIdentity } from "../net/channel/server_upstream.ts";
import type { TlsMaterial } from "../net/tls/trust/credentials.ts";

export interface NodeIdentity extends UpstreamIdentity {
  /** For the next connection; behind `ready`. */
  readonly current: TlsMaterial;
  /** Settles when what a server was asked is kept, or soon: before the end. */
  settled(): Promise<void>;
}

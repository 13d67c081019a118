/**
 * A server that is looked for, and as whom: what all that look share; and whether
 * an address is this machine's, for then no line lies between it and us.
 *
 * @module
 */

import type { ProxyEnvironment } from "../../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";
import type { TlsMaterial } from "../../../net/tls/trust/credentials.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { isLoopbackHost } from "../../../proto/peer/ip_address.ts";

/** Where to, and as whom. */
export interface ServerPathOptions {
  readonly address: ServerAddress;
  /** Whom to trust, and what to show. */
  readonly credentials: TlsMaterial;
  /** What the server's certificate must be for; absent: the host. */
  readonly serverName?: string;
  readonly otherNames?: readonly string[];
  readonly proxyEnv: ProxyEnvironment;
  /** By preference. */
  readonly alpn: readonly string[];
  /** Where that server would answer about its health. */
  readonly healthPort: number;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** @param host An IP address or `localhost`; all addresses (`0.0.0.0`) count. */
export function isHere(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || isLoopbackHost(host) ||
    Deno.networkInterfaces().some(({ address }) => address === host);
}

/**
 * Servers as upstreams of channels and links: several addresses, tried in turn,
 * over TLS with our identity, or over plain TCP on this machine.
 *
 * @module
 */

import {
  ConnectError,
  connectPlain,
  connectTls,
} from "../dial/server_connect.ts";
import type { Upstream } from "./upstream.ts";
import type { ProxyEnvironment } from "../dial/proxy_environment.ts";
import {
  type ResolvedServer,
  type ServerAddress,
  systemServerAddresses,
} from "../dial/server_addresses.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import type { TlsMaterial } from "../tls/trust/credentials.ts";
import type { Stream } from "../stream/stream.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";

/** For name, TCP and handshake of each server that is tried. */
export const UPSTREAM_CONNECT_TIMEOUT_MS = 10_000;

/** Whose credentials are shown, where that is looked after. */
export interface UpstreamIdentity {
  /** Sees to it that there is something good to show. @throws One sentence. */
  ready(): Promise<void>;
  /**
   * A connection failed.
   *
   * @param server The one of perhaps several that it was made to.
   * @returns Whether the credentials or the trust have changed, so that an
   *   immediate second attempt makes sense.
   */
  failed?(error: unknown, server: ResolvedServer): boolean;
  /** See {@linkcode Upstream.used}. */
  used?(connection: Connection): void;
}

/** Our identity, and the authorities to trust. */
export interface TlsUpstreamOptions {
  readonly addresses: readonly ServerAddress[];
  /**
   * The servers' addresses now, called for each connection; absent: they do not
   * change.
   */
  readonly findServers?:
    | (() => Promise<readonly ServerAddress[] | undefined>)
    | undefined;
  /** Read for each connection, so that files may be replaced. */
  readonly credentials: () => TlsMaterial;
  readonly identity?: UpstreamIdentity | undefined;
  /** What servers' certificates must be for; the address dialed unless given. */
  readonly serverName?: string | undefined;
  /** Or for one of these. */
  readonly otherNames?: readonly string[] | undefined;
  readonly proxyEnv: ProxyEnvironment;
}

/** Servers over TLS. */
export interface TlsUpstream extends Upstream {
  /** @param alpn By preference; `h2` alone unless given. */
  connect<Result>(
    use: (stream: Stream) => Result | Promise<Result>,
    signal?: AbortSignal,
    alpn?: readonly string[],
  ): Promise<Result>;
}

/** To agent ports of tunnel servers, or to servers of ADS with TLS. */
export function tlsUpstream(options: TlsUpstreamOptions): TlsUpstream {
  const { addresses, serverName, otherNames, proxyEnv, identity } = options;
  const { findServers } = options;
  const servers = systemServerAddresses(addresses, proxyEnv);
  return {
    authority: serverName ?? addresses[0]?.host ?? "",
    scheme: "https",
    async connect(use, signal, alpn = ["h2"]) {
      await identity?.ready();
      const found = await findServers?.();
      if (found !== undefined) servers.use(found);
      signal?.throwIfAborted();
      let isChanged = false;
      const connect = () =>
        servers.connect((place) =>
          connectTls({
            ...place,
            serverName,
            otherNames,
            credentials: options.credentials(),
            alpn,
            proxyEnv,
            timeoutMs: UPSTREAM_CONNECT_TIMEOUT_MS,
            signal,
          }).then(use).catch((error) => {
            if (identity?.failed?.(error, place)) isChanged = true;
            throw error;
          })
        );
      try {
        return await connect();
      } catch (error) {
        if (!isChanged) throw error;
        return await connect();
      }
    },
    ...identity?.used === undefined
      ? {}
      : { used: (connection) => identity.used?.(connection) },
  };
}

/**
 * Over plain TCP, HTTP/2 from its first byte ("prior knowledge"): to servers
 * and relays on this machine only.
 */
export function plainUpstream(addresses: readonly ServerAddress[]): Upstream {
  // No proxy of the environment leads to this machine.
  const servers = systemServerAddresses(addresses, {});
  return {
    authority: "localhost",
    scheme: "http",
    connect: (use, signal) =>
      servers.connect(async (place) => {
        const { host, port, ip = host } = place;
        if (!isLoopback(ip)) {
          throw new ConnectError(
            `Cannot connect to ${hostPort(host, port)} without TLS: ${ip} is ` +
              "another machine",
          );
        }
        const timeoutMs = UPSTREAM_CONNECT_TIMEOUT_MS;
        return use(await connectPlain({ ...place, timeoutMs, signal }));
      }),
  };
}

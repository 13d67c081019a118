/**
 * How a client of xDS gets to a server: which of several, over what, as whom.
 *
 * @module
 */

import { connectAgentTls, ConnectError } from "../../net/dial/agent_connect.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import {
  type ServerAddress,
  type ServerPlace,
  systemServerAddresses,
} from "../../net/dial/server_addresses.ts";
import { withDeadline } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { connectToAddress } from "../../net/stream/socket_connect.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { NodeIdentity } from "../node_identity.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";

/** For name, TCP and handshake, of each server that is tried. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** As whom, and whom to trust. */
export interface TlsUpstreamOptions {
  readonly addresses: readonly ServerAddress[];
  /** Read for each connection, so that files may be replaced. */
  readonly credentials: () => TlsMaterial;
  /** Whose these are, when that is looked after. */
  readonly identity?: NodeIdentity;
  /** What servers' certificates must be for; the address dialed unless given. */
  readonly serverName?: string;
  readonly proxyEnv: ProxyEnvironment;
}

/** To agent ports of tunnel servers, or whoever speaks ADS with TLS. */
export function tlsUpstream(options: TlsUpstreamOptions): Upstream {
  const { addresses, serverName, proxyEnv } = options;
  const { identity } = options;
  const servers = systemServerAddresses(addresses, proxyEnv);
  const connect = <Result>(
    use: (transport: Stream) => Result,
    signal: AbortSignal,
  ): Promise<Result> =>
    servers.connect((place) =>
      connectAgentTls({
        ...place,
        ...serverName === undefined ? {} : { serverName },
        credentials: options.credentials(),
        alpn: ["h2"],
        proxyEnv,
        timeoutMs: CONNECT_TIMEOUT_MS,
        signal,
      }, use)
    );
  return {
    authority: serverName ?? addresses[0]!.host,
    scheme: "https",
    async connect(use, signal) {
      await identity?.ready();
      signal.throwIfAborted();
      try {
        return await connect(use, signal);
      } catch (error) {
        if (identity === undefined || !identity.failed(error)) throw error;
        return await connect(use, signal);
      }
    },
    ...identity === undefined
      ? {}
      : { used: (connection) => identity.used(connection) },
  };
}

/**
 * Over plain TCP, HTTP/2 from its first byte ("prior knowledge"): to servers
 * and relays on this machine, and to nobody else.
 */
export function plainUpstream(addresses: readonly ServerAddress[]): Upstream {
  // No proxy of the environment leads to this machine.
  const servers = systemServerAddresses(addresses, {});
  return {
    authority: "localhost",
    scheme: "http",
    connect: (use, signal) =>
      servers.connect(async (place) => use(await connectPlain(place, signal))),
  };
}

async function connectPlain(
  { host, port, ip = host }: ServerPlace,
  signal: AbortSignal,
): Promise<Stream> {
  const name = hostPort(host, port);
  if (!isLoopback(ip)) {
    throw new ConnectError(
      `Cannot connect to ${name} without TLS: ${ip} is another machine`,
    );
  }
  const failed = (words: string) =>
    new ConnectError(`Cannot connect to ${name}: ${words}`);
  return await withDeadline({
    timers: systemTimers,
    timeoutMs: CONNECT_TIMEOUT_MS,
    late: () => failed(`no answer within ${CONNECT_TIMEOUT_MS} ms`),
    signal,
    givenUp: () => failed("given up"),
  }, async (signal) => {
    try {
      const to = { hostname: ip, port };
      return await connectToAddress(to, signal);
    } catch (error) {
      signal.throwIfAborted();
      // Whatever the kernel says here is about the world.
      throw failed(
        codeOf(error) === "ECONNREFUSED"
          ? "connection refused; is a server running there?"
          : (error as Error).message,
      );
    }
  });
}

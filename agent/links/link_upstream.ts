/**
 * The way to a server: the next address that answers, TLS as whoever this agent
 * is, and a certificate that is good when it is shown.
 *
 * @module
 */

import { connectAgentTls } from "../../net/dial/agent_connect.ts";
import {
  NoServerError,
  type ServerAddress,
  type ServerAddresses,
  systemServerAddresses,
} from "../../net/dial/server_addresses.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { UnheardError } from "./connector.ts";
import type { LinkEnvironment } from "./link_environment.ts";

/** How long a server may take from TCP to the end of the TLS handshake. */
const CONNECT_TIMEOUT_MS = 10_000;

/** See the module description. */
export class LinkUpstream {
  readonly #servers: ServerAddresses;
  readonly #credentials: Credentials;
  readonly #environment: LinkEnvironment;
  /** `:authority` of requests. */
  readonly authority: string;

  constructor(
    addresses: readonly ServerAddress[],
    credentials: Credentials,
    environment: LinkEnvironment,
  ) {
    this.#servers = systemServerAddresses(addresses, environment.proxy);
    this.#credentials = credentials;
    this.#environment = environment;
    this.authority = environment.identity?.serverName ??
      addresses[0]?.host ?? TUNNEL_SERVER_NAME;
  }

  /** See `ConnectorOptions.openTransport`. */
  async open<Result>(
    alpn: readonly string[],
    use: (transport: Stream) => Promise<Result>,
  ): Promise<Result> {
    const { identity, proxy } = this.#environment;
    await identity?.ready();
    const found = await identity?.findServers?.();
    if (found !== undefined) this.#servers.use(found);
    const serverName = identity?.serverName;
    const connect = () =>
      this.#servers.connect(async (place) =>
        await connectAgentTls({
          ...place,
          ...(serverName === undefined ? {} : { serverName }),
          credentials: this.#credentials.current,
          alpn,
          proxyEnv: proxy,
          timeoutMs: CONNECT_TIMEOUT_MS,
        }, use)
      );
    try {
      return await connect();
    } catch (error) {
      if (isHandshake(error) && identity?.lookAgain?.()) return await connect();
      if (isAboutCertificate(error)) identity?.doubt?.();
      throw error;
    }
  }
}

/** Whether one of the places was reached, and certificates were of no use. */
function isHandshake(error: unknown): boolean {
  if (error instanceof NoServerError) return error.errors.some(isHandshake);
  return error instanceof TlsHandshakeError;
}

/** With TLS 1.3 a server that does not take a certificate may just hang up. */
function isAboutCertificate(error: unknown): boolean {
  if (error instanceof NoServerError) {
    return error.errors.some(isAboutCertificate);
  }
  return error instanceof UnheardError ||
    (error instanceof TlsHandshakeError && error.failure === "refused-by-peer");
}

/**
 * An agent's connection to a server by the platform's own TLS client.
 *
 * Only for a process that trusts no public authority
 * (`tls/given_authorities.ts`) and a server that is reached directly: this
 * client makes its TCP connection itself, so no proxy can be in between.
 *
 * @module
 */

import { denoTlsSocket } from "../tls/deno/deno_tls_socket.ts";
import { socketTransport } from "../stream/socket_transport.ts";
import { canTuneSockets } from "../libc/tcp_options.ts";
import type { TlsMaterial } from "../tls/trust/credentials.ts";
import { withCode } from "../tls/deno/rustls_errors.ts";
import type { Transport } from "../stream/transport.ts";

/** Whom to connect to and as whom. */
export interface DirectTarget {
  readonly host: string;
  readonly port: number;
  readonly credentials: TlsMaterial;
  readonly alpn: readonly string[];
  /** Name the server's certificate must be for. */
  readonly serverName: string;
}

/** Where the platform's `node:tls` puts a name that differs from the host. */
const SERVER_NAME: symbol | undefined = serverNameSymbol();

function serverNameSymbol(): symbol | undefined {
  const platform = Deno as unknown as Record<symbol, unknown> & {
    internal?: symbol;
  };
  const internal = platform.internal && platform[platform.internal];
  const symbol = (internal as Record<string, unknown> | undefined)
    ?.["serverNameSymbol"];
  return typeof symbol === "symbol" ? symbol : undefined;
}

/** Whether this platform can do it as well as `node:tls` would. */
export function canConnectDenoTls(target: DirectTarget): boolean {
  const { host, serverName, credentials } = target;
  // Without that, Nagle's algorithm would cost more than this client saves.
  return credentials.ca !== "" && canTuneSockets() &&
    (host === serverName || SERVER_NAME !== undefined);
}

/**
 * Connects and shakes hands.
 *
 * @param signal Rejects with its reason. The platform's attempt cannot be
 *   called off; it is closed when it has come to its end.
 * @throws What the platform says, with a `code` of OpenSSL's or the kernel's.
 */
export async function connectDenoTls(
  target: DirectTarget,
  signal: AbortSignal,
): Promise<Transport> {
  const attempt = doHandshake(target);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    const [conn, alpn] = await Promise.race([attempt, aborted]);
    return socketTransport(denoTlsSocket(conn, alpn));
  } catch (error) {
    // A late success is closed, a late failure was answered already.
    attempt.then(([conn]) => conn.close(), () => {});
    throw withCode(error);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function doHandshake(
  target: DirectTarget,
): Promise<[conn: Deno.TlsConn, alpn: string]> {
  const { host, port, credentials, alpn, serverName } = target;
  const { cert, key, ca } = credentials;
  const conn = await Deno.connectTls(
    {
      hostname: host,
      port,
      caCerts: [ca],
      alpnProtocols: [...alpn],
      ...(cert === "" ? {} : { cert, key }),
      ...(serverName === host ? {} : { [SERVER_NAME!]: serverName }),
    } as Deno.ConnectTlsOptions & Partial<Deno.TlsCertifiedKeyPem>,
  );
  try {
    const { alpnProtocol } = await conn.handshake();
    return [conn, alpnProtocol ?? ""];
  } catch (error) {
    conn.close();
    throw error;
  }
}

/**
 * Connections to members of etcd: TLS with ALPN `h2`, or plain TCP on which
 * HTTP/2 begins at once ("prior knowledge").
 *
 * No proxy of the environment is asked: etcd is near, and its traffic secret.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { connectAgentTls, ConnectError } from "../../net/dial/agent_connect.ts";
import { connectToHost } from "../../net/dial/connect_host.ts";
import { withDeadline } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { socketTransport } from "../../net/stream/socket_transport.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import type { Transport } from "../../net/stream/transport.ts";
import { type MemberAddress, memberName } from "./member_address.ts";

/** For name, TCP and handshake. */
export const CONNECT_TIMEOUT_MS = 3_000;

/**
 * Connects to a member.
 *
 * @param use Gets the transport and starts it before it returns.
 * @throws {GrpcError} UNAVAILABLE, with one sentence.
 */
export type ConnectMember = <Result>(
  member: MemberAddress,
  signal: AbortSignal,
  use: (transport: Transport) => Result,
) => Promise<Result>;

/** @param material Read for each connection, so that files may be replaced. */
export function memberConnector(material: () => TlsMaterial): ConnectMember {
  return async (member, signal, use) => {
    try {
      if (!member.isTls) return use(await connectPlain(member, signal));
      return await connectAgentTls({
        host: member.host,
        port: member.port,
        credentials: material(),
        alpn: ["h2"],
        proxyEnv: {},
        timeoutMs: CONNECT_TIMEOUT_MS,
        signal,
      }, use);
    } catch (error) {
      if (
        error instanceof ConnectError || error instanceof TlsHandshakeError
      ) throw new GrpcError(StatusCode.UNAVAILABLE, error.message);
      throw error;
    }
  };
}

async function connectPlain(
  member: MemberAddress,
  signal: AbortSignal,
): Promise<Transport> {
  const { host, port } = member;
  const timers = systemTimers;
  const failed = (words: string) =>
    new ConnectError(`Cannot connect to ${memberName(member)}: ${words}`);
  return await withDeadline({
    timers,
    timeoutMs: CONNECT_TIMEOUT_MS,
    late: () => failed(`no answer within ${CONNECT_TIMEOUT_MS} ms`),
    signal,
    givenUp: () => failed("given up"),
  }, async (signal) => {
    try {
      return socketTransport(
        await connectToHost(host, port, { timers, signal }),
      );
    } catch (error) {
      signal.throwIfAborted();
      // Whatever the kernel or the resolver says here is about the world.
      throw failed((error as Error).message);
    }
  });
}

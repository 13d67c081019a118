/**
 * The members of an etcd cluster, in turn, as the upstream of a channel: over
 * TLS with ALPN `h2`, or over plain TCP on which HTTP/2 begins at once ("prior
 * knowledge").
 *
 * No proxy of the environment is asked: etcd is near, and its traffic secret.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import {
  ConnectError,
  connectPlain,
  connectTls,
} from "../../net/dial/server_connect.ts";
import type { RequestTarget, Upstream } from "../../net/channel/upstream.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { hostPort, withoutBrackets } from "../../proto/peer/host_port.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { NeighbourConfigError } from "../tls_files.ts";

/** For name, TCP and handshake. */
export const ETCD_CONNECT_TIMEOUT_MS = 3_000;

/**
 * Connects to a member.
 *
 * @param use Gets the stream, at once.
 * @throws {GrpcError} UNAVAILABLE, with one sentence.
 */
export type ConnectMember = <Result>(
  member: MemberAddress,
  signal: AbortSignal,
  use: (stream: Stream) => Result,
) => Promise<Result>;

/** See {@linkcode membersUpstream}. */
export interface EtcdMembersOptions {
  /** At least one. */
  readonly members: readonly MemberAddress[];
  readonly connect: ConnectMember;
  readonly timers: Timers;
  /** Uniform in [0, 1): which is tried first, so that many spread. */
  readonly random: () => number;
}

/** Each attempt begins with the member behind the one that was had last. */
export function membersUpstream(
  { members, connect, timers, random }: EtcdMembersOptions,
): Upstream {
  let next = Math.floor(random() * members.length);
  return {
    ...targetOf(members[0]!),
    async connect(use, signal) {
      const failures: string[] = [];
      for (const _ of members) {
        const member = members[next++ % members.length]!;
        try {
          return await connect(member, signal, (stream) => {
            checkProtocol(member, stream, timers);
            return use(stream, targetOf(member));
          });
        } catch (error) {
          if (!(error instanceof GrpcError)) throw error;
          failures.push(error.message);
          if (signal.aborted) break;
        }
      }
      throw new GrpcError(StatusCode.UNAVAILABLE, failures.join("; "));
    },
  };
}

function targetOf({ host, port, isTls }: MemberAddress): RequestTarget {
  return {
    authority: hostPort(host, port),
    scheme: isTls ? "https" : "http",
  };
}

function checkProtocol(
  member: MemberAddress,
  stream: Stream,
  timers: Timers,
): void {
  if (!member.isTls || stream.alpn === "h2") return;
  openClientConnection(stream, { timers }).abort(0, "no HTTP/2");
  throw new GrpcError(
    StatusCode.UNAVAILABLE,
    `Cannot speak to ${memberName(member)}: it chose no HTTP/2 by ALPN; give ` +
      "the address for clients of an etcd member",
  );
}

/** @param material Read for each connection, so that files may be replaced. */
export function memberConnector(material: () => TlsMaterial): ConnectMember {
  return async (member, signal, use) => {
    const { host, port, isTls } = member;
    const to = { host, port, timeoutMs: ETCD_CONNECT_TIMEOUT_MS, signal };
    try {
      if (!isTls) return use(await connectPlain(to));
      return await connectTls({
        ...to,
        credentials: material(),
        alpn: ["h2"],
        proxyEnv: {},
      }).then(use);
    } catch (error) {
      if (
        error instanceof ConnectError || error instanceof TlsHandshakeError
      ) throw new GrpcError(StatusCode.UNAVAILABLE, error.message);
      throw error;
    }
  };
}

// Addresses of etcd's members, as etcd's own tools take them.

/** etcd's port for clients. */
export const CLIENT_PORT = 2379;

/** The address of one member. */
export interface MemberAddress {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/**
 * Reads `http://HOST[:PORT]`, `https://HOST[:PORT]` or `HOST[:PORT]`.
 *
 * @param isTlsByDefault Without a scheme: whether TLS files were given.
 * @throws {NeighbourConfigError} One sentence.
 */
export function parseEtcdMember(
  text: string,
  isTlsByDefault: boolean,
): MemberAddress {
  const withScheme = text.includes("://")
    ? text
    : `${isTlsByDefault ? "https" : "http"}://${text}`;
  const url = URL.parse(withScheme);
  const isTls = url?.protocol === "https:";
  if (
    url === null || !(isTls || url.protocol === "http:") ||
    url.hostname === "" || url.username !== "" || url.search !== "" ||
    url.hash !== "" || !/^\/?$/.test(url.pathname)
  ) {
    throw new NeighbourConfigError(
      `Cannot use etcd address "${text}": wanted http://HOST:PORT, ` +
        "https://HOST:PORT or HOST:PORT",
    );
  }
  // URLs forget the port that their scheme has by default.
  const isPortNamed = /:(?:80|443)\/?$/.test(withScheme);
  const byScheme = isTls ? 443 : 80;
  const port = isPortNamed ? byScheme : CLIENT_PORT;
  return {
    host: withoutBrackets(url.hostname),
    port: url.port === "" ? port : Number(url.port),
    isTls,
  };
}

/** For people. */
export function memberName({ host, port, isTls }: MemberAddress): string {
  return `${isTls ? "https" : "http"}://${hostPort(host, port)}`;
}

/**
 * The way to an admin port of TCP: names, and TLS where it is another
 * machine's. Loaded on demand, so that commands which ask a socket start
 * sooner.
 *
 * @module
 */

import { quietly } from "../../platform/errors/error_code.ts";
import { connectToHost } from "../../net/dial/connect_host.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { tlsClient } from "../../net/tls/tls_client.ts";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { listeningUsers } from "../../net/libc/port_owner.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";
import {
  hostOf,
  hostPort,
  withoutBrackets,
} from "../../proto/peer/host_port.ts";
import type { AdminAddress } from "./admin_client.ts";

/** @throws {Error} One sentence, or a system error. */
export async function connectToAdmin(
  { host, port, tls, token, tokenFile }: AdminAddress & {
    readonly kind: "tcp";
  },
  signal: AbortSignal,
): Promise<Stream> {
  const timers = systemTimers;
  if (tls === undefined) {
    const stream = await connectToHost(host, port, { timers, signal });
    const problem = token &&
      (elsewhere(stream) ?? (tokenFile && strangerAt(stream, port, tokenFile)));
    if (!problem) return stream;
    stream.close();
    throw new Error(problem);
  }
  const credentials = Credentials.load(tls).current;
  const stream = await connectToHost(host, port, { timers, signal });
  return await tlsClient(stream, {
    credentials,
    serverName: tls.serverName ?? host,
    alpn: ["http/1.1"],
    address: hostPort(host, port),
    signal,
  });
}

/** A name may lead anywhere, `localhost`, too: where it has led is what counts. */
function elsewhere({ remoteAddress }: Stream): string | undefined {
  return isLoopback(hostOf(remoteAddress))
    ? undefined
    : `its name has led to ${remoteAddress}, which is not this machine's ` +
      "loopback, so no token is shown; name 127.0.0.1";
}

/**
 * Attack in mind: while a program does not run, any user of this machine may
 * listen on its port, and wait for a client that shows its token there.
 *
 * @returns Why the token is not shown; `undefined`: it may be shown, or the
 *   owner is unknown.
 */
function strangerAt(
  { remoteAddress }: Stream,
  port: number,
  tokenFile: string,
): string | undefined {
  const owner = quietly(() => Deno.statSync(tokenFile).uid);
  const friends = [0, Deno.uid(), owner];
  const host = withoutBrackets(hostOf(remoteAddress));
  const stranger = listeningUsers(host, port)
    .find((user) => !friends.includes(user));
  return stranger === undefined
    ? undefined
    : `user ${stranger} listens there, who is neither you nor the owner of ` +
      `${tokenFile}, so it is not shown: see who that is (ss -ltnp 'sport = ` +
      `:${port}'); --token-file shows one all the same`;
}

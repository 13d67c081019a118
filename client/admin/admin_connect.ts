/**
 * The way to an admin port of TCP: names, and TLS where it is another machine's.
 * Loaded when it is wanted, so that commands which ask a socket start sooner.
 *
 * @module
 */

import { connectToHost } from "../../net/dial/connect_host.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { tlsClient } from "../../net/tls/tls_client.ts";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import type { AdminAddress } from "./admin_client.ts";

/** @throws {Error} One sentence, or a system error. */
export async function connectToAdmin(
  { host, port, tls }: AdminAddress & { readonly kind: "tcp" },
  signal: AbortSignal,
): Promise<Stream> {
  const timers = systemTimers;
  if (tls === undefined) {
    return await connectToHost(host, port, { timers, signal });
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

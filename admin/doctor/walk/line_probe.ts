/**
 * What the line to an address does to packets: whether it loses some, and whether
 * it swallows large ones. Connections are made, and the kernel is asked about them
 * (TCP_INFO); a server hears no word of the tunnel.
 *
 * @module
 */

import { openLibc } from "../../../net/libc/libc.ts";
import { resentSegments } from "../../../net/libc/socket_option.ts";
import { connectToAddress } from "../../../net/stream/socket_connect.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { sayGoodbye } from "../../../net/dial/server_connect.ts";
import { tlsClient } from "../../../net/tls/tls_client.ts";
import { NO_MATERIAL } from "../../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../../net/tls/trust/tls_errors.ts";
import type { DatagramAddress } from "../../../net/libc/socket_address.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";

/**
 * Connections that are made to see loss: of a line that loses a tenth of its
 * packets, two in three walks notice it; of one that loses a third, all.
 */
const PROBES = 8;

/** One SYN that is sent again may be a busy machine's. */
const RESENT_MIN = 2;

/** Every IPv4 path takes packets of this size (RFC 9293 §3.7.1). */
const SMALL_SEGMENT_BYTES = 500;

/** What connecting to one address several times has shown. */
export interface LineLook {
  /** Of the first connection, if none was made. */
  readonly error?: unknown;
  /** Sentence for people; absent: nothing is odd. */
  readonly loss?: string;
}

/** Connects several times at once. @param signal Gives up what is not there. */
export async function lookAtLine(
  address: DatagramAddress,
  signal: AbortSignal,
): Promise<LineLook> {
  const made = await Promise.allSettled(
    Array.from({ length: PROBES }, () => connectToAddress(address, signal)),
  );
  const streams = made.flatMap((one) =>
    one.status === "fulfilled" ? [one.value] : []
  );
  const resent = streams.reduce((sum, each) => sum + resentOf(each), 0);
  for (const each of streams) each.close();
  const lost = made.length - streams.length;
  const [first] = made.filter((one) => one.status === "rejected");
  if (streams.length === 0) return { error: first?.reason };
  return lost + resent < RESENT_MIN ? {} : {
    loss: `of ${PROBES} connections ${
      lost === 0 ? "all were made" : `${lost} were not made in time`
    }, and ${resent} packets had to be sent again`,
  };
}

function resentOf({ descriptor }: Stream): number {
  const library = openLibc();
  if (library === undefined || descriptor === undefined) return 0;
  return resentSegments(library, descriptor) ?? 0;
}

/**
 * Whether a TLS server answers when neither end sends large packets. What it
 * shows is not verified, and nothing is shown to it.
 *
 * @param signal Gives it up.
 */
export async function answersInSmallPackets(
  address: DatagramAddress,
  how: { readonly serverName: string; readonly alpn: readonly string[] },
  signal: AbortSignal,
): Promise<boolean> {
  const stream = await connectToAddress(address, signal, SMALL_SEGMENT_BYTES);
  try {
    const secure = await tlsClient(stream, {
      ...how,
      credentials: NO_MATERIAL,
      isUnverified: true,
      address: hostPort(address.hostname, address.port),
      signal,
    });
    sayGoodbye(secure);
    return true;
  } catch (error) {
    // A refusal is an answer, too.
    return error instanceof TlsHandshakeError &&
      !["timeout", "closed", "not-tls"].includes(error.failure);
  }
}

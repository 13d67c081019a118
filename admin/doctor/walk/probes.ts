/**
 * Doctor's probes of a server: which program answers on the port, whether the
 * line loses packets, and whether it carries long ones.
 *
 * @module
 */

import type { ProxyEnvironment } from "../../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";
import {
  NO_MATERIAL,
  type TlsMaterial,
} from "../../../net/tls/trust/credentials.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { isLoopbackHost } from "../../../proto/peer/ip_address.ts";
import { Socket } from "../../../net/stream/socket.ts";
import { connectToHost } from "../../../net/dial/connect_host.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import { resentSegments } from "../../../net/libc/socket_option.ts";
import { connectToAddress } from "../../../net/stream/socket_connect.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { sayGoodbye } from "../../../net/dial/server_connect.ts";
import { tlsClient } from "../../../net/tls/tls_client.ts";
import { TlsHandshakeError } from "../../../net/tls/trust/tls_errors.ts";
import type { DatagramAddress } from "../../../net/libc/socket_address.ts";

/** The destination, and the credentials. */
export interface ServerPathOptions {
  readonly address: ServerAddress;
  /** Whom to trust, and what to show. */
  readonly credentials: TlsMaterial;
  /** What the server's certificate must be for; absent: the host. */
  readonly serverName?: string | undefined;
  readonly proxyEnv: ProxyEnvironment;
  /** In order of preference. */
  readonly alpn: readonly string[];
}

/** @param host An IP address or `localhost`; all addresses (`0.0.0.0`) count. */
export function isHere(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || isLoopbackHost(host) ||
    Deno.networkInterfaces().some(({ address }) => address === host);
}

/** What listens there, as far as it shows. */
export interface PortKind {
  readonly kind:
    | "health"
    | "admin"
    | "http"
    | "tls"
    | "ssh"
    | "other"
    | "silent"
    | "closed";
  /** The clock of the answering machine, if it tells it (HTTP's Date). */
  readonly dateMs?: number;
}

/** Its name in sentences. */
export const PORT_KIND_WORDS: Readonly<Record<PortKind["kind"], string>> = {
  health: "the health port of a tunnel server or agent",
  admin: "the admin port of a tunnel server or agent, or another HTTP server",
  http: "an HTTP server",
  tls: "another TLS server",
  ssh: "an SSH server",
  other: "something that speaks neither TLS nor HTTP",
  silent: "something that says nothing",
  closed: "something that hangs up at once",
};

/** What is read of an answer. */
const ANSWER_BYTES_MAX = 4_096;

/** A peer that is silent for this long will stay silent. */
const SILENCE_MS = 400;

/**
 * Looks who is there.
 *
 * @throws As `connectToHost`.
 */
export async function portKind(
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<PortKind> {
  using listener = await listenerAt(host, port, signal);
  const { socket } = listener;
  try {
    const request = `GET /healthz HTTP/1.1\r\nHost: ${hostPort(host, port)}` +
      "\r\nConnection: close\r\n\r\n";
    await socket.writeAll(new TextEncoder().encode(request));
    return kindOf(await answerOf(socket));
  } catch {
    // The reaction of a foreign program to our request is not a fault.
    return { kind: listener.isSilent ? "silent" : "closed" };
  }
}

/**
 * Whether what listens there waits to be spoken to, as every TLS server does.
 *
 * @throws As `connectToHost`.
 */
export async function staysOpen(
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<boolean> {
  using listener = await listenerAt(host, port, signal);
  await listener.socket.read(new Uint8Array(1)).catch(() => {});
  return listener.isSilent;
}

/** What listens there; the connection ends when it stays silent. */
async function listenerAt(host: string, port: number, signal: AbortSignal) {
  const timers = systemTimers;
  const socket = new Socket(
    await connectToHost(host, port, { timers, signal }),
  );
  const timer = timers.after(SILENCE_MS, () => {
    found.isSilent = true;
    socket.close();
  });
  const found = {
    socket,
    isSilent: false,
    [Symbol.dispose]() {
      timer.cancel();
      socket.close();
    },
  };
  return found;
}

async function answerOf(socket: Socket): Promise<Uint8Array> {
  const answer = new Uint8Array(ANSWER_BYTES_MAX);
  const into = new Uint8Array(ANSWER_BYTES_MAX);
  let length = 0;
  while (length < ANSWER_BYTES_MAX) {
    const count = await socket.read(into).catch((error) => {
      // The bytes before it hung up are what counts.
      if (length > 0) return null;
      throw error;
    });
    if (count === null) break;
    const taken = into.subarray(0, Math.min(count, ANSWER_BYTES_MAX - length));
    answer.set(taken, length);
    length += taken.length;
    if (!isHttp(answer)) break;
  }
  return answer.subarray(0, length);
}

function isHttp(bytes: Uint8Array): boolean {
  return new TextDecoder("latin1").decode(bytes.subarray(0, 5)) === "HTTP/";
}

/** A TLS record that is an alert (RFC 8446 §5.1). */
const TLS_ALERT = 0x15;

function kindOf(answer: Uint8Array): PortKind {
  if (answer.length === 0) return { kind: "closed" };
  if (answer[0] === TLS_ALERT && answer[1] === 3) return { kind: "tls" };
  const text = new TextDecoder("latin1").decode(answer);
  if (text.startsWith("SSH-")) return { kind: "ssh" };
  if (!text.startsWith("HTTP/")) return { kind: "other" };
  const date = Date.parse(/^date: (.+)$/im.exec(text)?.[1] ?? "");
  const when = Number.isNaN(date) ? {} : { dateMs: date };
  // Go's TLS servers answer so in plain.
  if (/HTTP request to an HTTPS server|requires TLS/i.test(text)) {
    return { kind: "tls", ...when };
  }
  if (/^HTTP\/1\.[01] 200 [^]*\r\n\r\nok$/.test(text.trimEnd())) {
    return { kind: "health", ...when };
  }
  if (text.includes("404 page not found")) return { kind: "admin", ...when };
  return { kind: "http", ...when };
}

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
  /** The error of the first connection, if none was made. */
  readonly error?: unknown;
  /** Sentence for people; absent: nothing unusual. */
  readonly loss?: string;
}

/**
 * Makes several connections at once.
 *
 * @param signal Gives up unanswered ones.
 */
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
 * Whether a TLS server answers when neither end sends large packets. Its
 * certificate is not verified, and no certificate is shown to it.
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

/**
 * What answers on a port that does not answer as it should: it is asked as a
 * browser would ask it, and what it says is looked at, no more.
 *
 * @module
 */

import { Socket } from "../../../net/stream/socket.ts";
import { connectToHost } from "../../../net/dial/connect_host.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import type { Timers } from "../../../proto/sync/clock.ts";

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
  /** The clock of what answered, where it says it (HTTP's Date). */
  readonly dateMs?: number;
}

/** For sentences. */
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

/** What says nothing for so long will not. */
const SILENCE_MS = 400;

/**
 * Looks who is there.
 *
 * @throws As `connectToHost`.
 */
export async function portKind(
  host: string,
  port: number,
  timers: Timers,
  signal: AbortSignal,
): Promise<PortKind> {
  const stream = await connectToHost(host, port, { timers, signal });
  const socket = new Socket(stream);
  let isSilent = false;
  const timer = timers.after(SILENCE_MS, () => {
    isSilent = true;
    socket.close();
  });
  try {
    const request = `GET /healthz HTTP/1.1\r\nHost: ${hostPort(host, port)}` +
      "\r\nConnection: close\r\n\r\n";
    await socket.writeAll(new TextEncoder().encode(request));
    return kindOf(await answerOf(socket));
  } catch {
    // What a stranger does with our request is no fault of anybody.
    return { kind: isSilent ? "silent" : "closed" };
  } finally {
    timer.cancel();
    socket.close();
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
  timers: Timers,
  signal: AbortSignal,
): Promise<boolean> {
  const socket = new Socket(
    await connectToHost(host, port, { timers, signal }),
  );
  let isSilent = false;
  const timer = timers.after(SILENCE_MS, () => {
    isSilent = true;
    socket.close();
  });
  await socket.read(new Uint8Array(1)).catch(() => {});
  timer.cancel();
  socket.close();
  return isSilent;
}

async function answerOf(socket: Socket): Promise<Uint8Array> {
  const answer = new Uint8Array(ANSWER_BYTES_MAX);
  const into = new Uint8Array(ANSWER_BYTES_MAX);
  let length = 0;
  while (length < ANSWER_BYTES_MAX) {
    const count = await socket.read(into).catch((error) => {
      // What it said before it hung up is what counts.
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

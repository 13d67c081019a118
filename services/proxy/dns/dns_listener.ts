/**
 * A port where DNS questions are asked, over UDP and over TCP.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { listenError } from "../../../net/bind/listen_error.ts";
import {
  type ListenAddress,
  listenTcp,
} from "../../../net/listen/listeners.ts";
import {
  openDatagramSocket,
  senderOf,
} from "../../../net/datagram/datagram_socket.ts";
import { hostOf, hostPort } from "../../../proto/peer/host_port.ts";
import { isWildcard } from "../../../net/libc/socket_address.ts";
import { canonicalIp } from "../../../proto/peer/ip_address.ts";
import { Socket } from "../../../net/stream/socket.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { DnsResponder, QUESTION_BYTES_MAX } from "./dns.ts";
import { type DnsAsker, DnsZone } from "./dns_zone.ts";
import type { PortListener } from "../listeners/proxied_port.ts";
import type { CountingTools } from "../../../platform/program/tools.ts";
import { OwnAddresses } from "../listeners/own_addresses.ts";
import type { Proxy } from "../ports/proxy.ts";
import { ServiceListener } from "../listeners/service_listener.ts";

/** Over TCP at once; questions come over UDP, all but a few. */
export const DNS_CONNECTIONS_MAX = 64;

/** After so long without a question a connection ends (RFC 7766 §6.2.3). */
export const TCP_IDLE_MS = 10_000;

/** In front of each message over TCP (RFC 1035 §4.2.2). */
const LENGTH_BYTES = 2;

/** With any free port: the TCP port of the same number may be taken. */
const FREE_PORT_TRIES = 8;

/** Used when the kernel cannot say which address a question came to. */
const ANSWERS_FROM_ANYWHERE =
  "answers over UDP may leave from another address of this machine than was " +
  "asked, because the C library cannot be asked (no FFI); give --dns-listen " +
  "one address";

/** Answers questions. */
type DnsAnswers = Pick<DnsResponder, "answer">;

/**
 * Listens over both; port 0 is any that is free.
 *
 * @throws {ListenError} Then nothing stays open.
 */
export async function listenDns(
  { hostname, port }: ListenAddress,
  answers: DnsAnswers,
  context: Tools,
): Promise<PortListener> {
  for (let tries = 1;; tries++) {
    const overTcp = listenQuestions({ hostname, port }, answers, context);
    try {
      const at = { hostname, port: overTcp.port };
      return together(overTcp, await listenDatagrams(at, answers, context));
    } catch (error) {
      overTcp.close();
      await overTcp.finished;
      if (port !== 0 || tries === FREE_PORT_TRIES) {
        throw listenError(hostPort(hostname, port), error);
      }
    }
  }
}

async function listenDatagrams(
  at: ListenAddress,
  answers: DnsAnswers,
  { log }: Tools,
): Promise<Closing> {
  const socket = await openDatagramSocket(at, { isServer: true });
  const broken = Promise.withResolvers<string>();
  if (isWildcard(at.hostname) && !socket.reportsLocal) {
    log.warn(`DNS: ${ANSWERS_FROM_ANYWHERE}`, { code: "TUN115" });
  }
  socket.listen({
    onDatagram(bytes, hostname, port, local) {
      const from = canonicalIp(hostname);
      const asked = canonicalIp(local ?? at.hostname);
      const answer = answers.answer(bytes, "udp", { from, asked });
      if (answer === undefined) return;
      socket.send(answer, senderOf(hostname, port, local));
    },
    onError: (error) => broken.resolve(error.message),
  });
  const closed = Promise.withResolvers<void>();
  return {
    close: () => socket.close(closed.resolve),
    finished: closed.promise,
    broken: broken.promise,
  };
}

function listenQuestions(
  at: ListenAddress,
  answers: DnsAnswers,
  { log, timers }: Tools,
): PortListener & Closing {
  const open = new Set<Questions>();
  const listener = listenTcp(at, {
    onConnection(conn) {
      if (open.size >= DNS_CONNECTIONS_MAX) return conn.close();
      const questions = new Questions(conn, timers);
      open.add(questions);
      const answering = questions.answer(answers)
        .finally(() => open.delete(questions));
      unawaited("proxy", answering, () => conn.close());
    },
    onProblem: (line) => log.warn(`DNS: ${line}`, { code: "TUN513" }),
  });
  return {
    ...listener,
    close() {
      listener.close();
      for (const questions of open) questions.close();
    },
  };
}

interface Closing {
  close(): void;
  /** Settles when the address is free. */
  readonly finished: Promise<void>;
  /** See `PortListener`. */
  readonly broken?: Promise<string>;
}

function together(one: PortListener & Closing, other: Closing): PortListener {
  return {
    address: one.address,
    port: one.port,
    close() {
      one.close();
      other.close();
    },
    finished: Promise.all([one.finished, other.finished]).then(() => {}),
    broken: other.broken,
  };
}

/** The questions of one connection, one after another. */
class Questions {
  readonly #conn: Socket;
  readonly #asker: DnsAsker;
  #isClosed = false;

  constructor(stream: Stream, private readonly timers: Timers) {
    this.#conn = new Socket(stream);
    this.#asker = {
      from: canonicalIp(hostOf(stream.remoteAddress)),
      asked: canonicalIp(hostOf(stream.localAddress)),
    };
  }

  async answer(answers: DnsAnswers): Promise<void> {
    try {
      while (await this.#once(answers));
    } catch (error) {
      // A connection that breaks off needs no report.
      if (!(error instanceof Deno.errors.BadResource) && !isBroken(error)) {
        throw error;
      }
    } finally {
      this.close();
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#conn.close();
  }

  /** Reads one and answers it. @returns Whether there may be more. */
  async #once(answers: DnsAnswers): Promise<boolean> {
    const deadline = this.timers.after(TCP_IDLE_MS, () => this.close());
    try {
      const conn = this.#conn;
      if (!await conn.fill(LENGTH_BYTES)) return false;
      const length = (conn.bytes[0]! << 8) | conn.bytes[1]!;
      // No client needs to ask that much, and later messages could not be
      // found.
      if (length > QUESTION_BYTES_MAX) return false;
      const end = LENGTH_BYTES + length;
      if (!await conn.fill(end)) return false;
      const answer = answers.answer(
        conn.bytes.slice(LENGTH_BYTES, end),
        "tcp",
        this.#asker,
      );
      conn.drop(end);
      if (answer === undefined) return false;
      // The length leaves with the message: some read them apart and give up.
      const message = new Uint8Array(LENGTH_BYTES + answer.length);
      new DataView(message.buffer).setUint16(0, answer.length);
      message.set(answer, LENGTH_BYTES);
      await conn.writeAll(message);
      return true;
    } finally {
      deadline.cancel();
    }
  }
}

function isBroken(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.ConnectionAborted ||
    error instanceof Deno.errors.Interrupted ||
    error instanceof Deno.errors.TimedOut;
}

/**
 * A proxy's DNS, kept up: a port that another program has is tried until it is
 * free, as with those of services.
 *
 * @returns What is to be told where to listen; see {@linkcode ServiceListener}.
 */
export function dnsService(
  proxy: Proxy,
  tools: CountingTools,
  changed: () => void,
): ServiceListener {
  const responder = new DnsResponder(new DnsZone(proxy));
  tools.metrics.computedLabelled(
    "counter",
    "tunnel_proxy_dns_answers_total",
    "Answers to DNS questions.",
    ["code"],
    () => [...responder.counts].map(([code, count]) => [[code], count]),
  );
  return new ServiceListener(
    {
      name: "DNS",
      protocol: "udp",
      own: new OwnAddresses(),
      changed,
      open: (at) => listenDns(at, responder, tools),
    },
    tools,
    Math.random,
  );
}

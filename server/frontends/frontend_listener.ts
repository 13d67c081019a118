/**
 * Where callers connect: a unix socket, or TCP with mutual TLS.
 *
 * It accepts connections and their handshakes; the port reads their requests.
 *
 * @module
 */

import {
  type BoundListener,
  listenTcp,
  listenUnix,
} from "../../net/listen/listeners.ts";
import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "../../net/admission/connection_limiter.ts";
import { PenaltyQueue } from "../../net/admission/penalty.ts";
import { TlsAcceptor } from "../../net/tls/tls_acceptor.ts";
import type { Stream } from "../../net/stream/stream.ts";
import {
  type CredentialFiles,
  type Credentials,
  pairFiles,
} from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { HTTP2_ALPN } from "../../proto/link/hello.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { FrontendListen, TlsLimits } from "../options.ts";

/** What {@linkcode listenFrontend} needs. */
export interface FrontendListenerOptions {
  readonly listen: FrontendListen;
  readonly tls: TlsLimits;
  readonly handshakeTimeoutMs: number;
  /** Every connection is counted there. */
  readonly limiter: ConnectionLimiter;
  /** Loads files that are read again when they change. */
  load(files: CredentialFiles): Credentials;
  /** A connection that may speak; over TCP it has shown its certificate. */
  accept(stream: Stream, admitted: AdmittedConnection): void;
  /** A caller's handshake failed. */
  refused(reason: string): void;
  onProblem(line: string): void;
}

/**
 * Starts to listen.
 *
 * @throws {CredentialsError | ListenError} One sentence; nothing stays open.
 */
export async function listenFrontend(
  options: FrontendListenerOptions,
): Promise<BoundListener> {
  const { listen, onProblem } = options;
  if (listen.kind === "unix") {
    const room = new PenaltyQueue<Caller>({
      timers: systemTimers,
      random: Math.random,
      admit: ({ stream, admitted, deadline }) => {
        deadline.cancel();
        options.accept(stream, admitted);
      },
    });
    return await listenUnix(listen.path, {
      isPatient: true,
      onConnection: (conn) => acceptPlain(conn, options, room),
      onProblem,
    }, listen.deleteExisting);
  }
  const credentials = options.load({
    ...pairFiles(listen.keyPair),
    ca: listen.caFile,
  });
  // A frontend on TCP always wants a certificate, as upstream's.
  const acceptor = new TlsAcceptor({
    credentials,
    clientCertificate: "required",
    alpn: [HTTP2_ALPN, "http/1.1"],
    handshakeTimeoutMs: options.handshakeTimeoutMs,
    ...options.tls,
    onProblem,
  });
  return listenTcp(listen.address, {
    isPatient: true,
    onConnection: (conn) =>
      unawaited(
        "handshake",
        acceptTls(conn, acceptor, options),
        () => conn.close(),
      ),
    onProblem,
  });
}

/** A caller that waits until its process has a try. */
interface Caller {
  readonly stream: Stream;
  readonly admitted: AdmittedConnection;
  readonly deadline: Timer;
}

/**
 * The socket's mode decides who may open it. If the system knows the process,
 * only a process that breaks rules is slowed down.
 */
function acceptPlain(
  stream: Stream,
  { limiter, accept }: FrontendListenerOptions,
  room: PenaltyQueue<Caller>,
): void {
  const { pid } = stream.peerCredentials() ?? {};
  const admitted = limiter.enter(undefined, () => stream.close(), pid);
  if (admitted === undefined) return stream.close();
  stream.onClosed = () => admitted.leave();
  const { penalty } = admitted;
  if (penalty === undefined || !penalty.isOn(systemTimers.now())) {
    return accept(stream, admitted);
  }
  const deadline = systemTimers.after(CONNECT_HEAD_TIMEOUT_MS, () => {
    room.leave(penalty, caller);
    stream.close();
  });
  const caller: Caller = { stream, admitted, deadline };
  if (room.wait(penalty, caller)) return;
  deadline.cancel();
  admitted.refusePenalized();
  stream.close();
}

async function acceptTls(
  conn: Stream,
  acceptor: TlsAcceptor,
  options: FrontendListenerOptions,
): Promise<void> {
  const { limiter, accept, refused } = options;
  const admitted = limiter.enter(conn.remoteAddress, () => conn.close());
  if (admitted === undefined) return conn.close();
  try {
    const stream = await acceptor.accept(conn, () => admitted.leave());
    admitted.known();
    accept(stream, admitted);
  } catch (error) {
    if (!(error instanceof TlsHandshakeError)) throw error;
    refused(error.message);
  }
}

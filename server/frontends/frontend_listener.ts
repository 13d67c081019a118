/**
 * Where callers connect: a unix socket, or TCP with mutual TLS.
 *
 * It accepts connections and their handshakes; the port reads their requests.
 *
 * @module
 */

import { type BoundListener, listenUnix } from "../../net/listen/listeners.ts";
import { listenCertified } from "../../net/listen/secure_listener.ts";
import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "../../net/admission/connection_limiter.ts";
import { PenaltyQueue } from "../../net/admission/penalty.ts";
import type { Stream } from "../../net/stream/stream.ts";
import {
  type CredentialFiles,
  type Credentials,
  pairFiles,
} from "../../net/tls/trust/credentials.ts";
import { HTTP2_ALPN } from "../../proto/link/hello.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { AcceptEvents } from "../../net/bind/accept_loop.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { FrontendListen, TlsLimits } from "../options.ts";

/** What {@linkcode listenFrontend} needs. */
export interface FrontendListenerOptions {
  readonly listen: FrontendListen;
  readonly tls: TlsLimits;
  /** Every connection is counted there. */
  readonly limiter: ConnectionLimiter;
  /** Loads files that are read again when they change. */
  load(files: CredentialFiles): Credentials;
  /** A connection that may speak; over TCP it has shown its certificate. */
  accept(stream: Stream, admitted: AdmittedConnection): void;
  /** A caller's handshake failed. */
  refused(reason: string): void;
  readonly onProblem: AcceptEvents<Stream>["onProblem"];
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
  return listenCertified({
    ...listen.address,
    ...options.tls,
    credentials,
    alpn: [HTTP2_ALPN, "http/1.1"],
    limiter: options.limiter,
  }, {
    onConnection: (stream, admitted) => options.accept(stream, admitted),
    onRefused: ({ message }) => options.refused(message),
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

/**
 * Listens on ports that strangers reach, for agents and for people: TLS behind an
 * accept queue that costs unauthenticated peers more than us.
 *
 * @module
 */

import {
  AcceptQueue,
  type AcceptQueueOptions,
  type AdmittedStream,
} from "../admission/accept_queue.ts";
import type {
  AdmittedConnection,
  ConnectionLimiter,
} from "../admission/connection_limiter.ts";
import { HandshakeQueue } from "../admission/handshake_queue.ts";
import { ListenError } from "../bind/listen_error.ts";
import { listenPolledTcp } from "../bind/polled_listener.ts";
import type { DescriptorUse } from "../libc/descriptors.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenTcp,
  openAt,
  PATIENT_BACKLOG,
} from "./listeners.ts";
import { tuneLink } from "../stream/socket_connect.ts";
import type { Stream } from "../stream/stream.ts";
import { TlsAcceptor, type TlsAcceptorOptions } from "../tls/tls_acceptor.ts";
import type { TlsHandshakeError } from "../tls/trust/tls_errors.ts";
import { guarded, unawaited } from "../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort } from "../../proto/peer/host_port.ts";

/** How the port presents itself. */
export interface SecureListenerOptions
  extends ListenAddress, Omit<TlsAcceptorOptions, "onProblem"> {
  /** Counts connections. */
  readonly limiter: ConnectionLimiter;
  /** The pool of its descriptors; default: `link`. */
  readonly use?: DescriptorUse;
}

/** What happens there. */
export interface SecurePortEvents {
  /** @param admitted As the limiter counts it. */
  onConnection(stream: Stream, admitted: AdmittedConnection): void;
  /** A handshake that failed; the connection is gone. */
  onRefused(error: TlsHandshakeError): void;
  onProblem(line: string): void;
}

/**
 * Listens there. New credentials are used for the next handshake.
 *
 * @throws {ListenError}
 */
export function listenSecure(
  options: SecureListenerOptions,
  events: SecurePortEvents,
): BoundListener {
  const { limiter, use = "link" } = options;
  const onProblem = (line: string) => events.onProblem(line);
  const acceptor = new TlsAcceptor({ ...options, onProblem });
  refuseSuites(options, acceptor);
  const acceptQueue = {
    limiter,
    queue: new HandshakeQueue(systemTimers),
    admit: (admittedStream: AdmittedStream) =>
      doHandshake(admittedStream, acceptor, events),
  };
  // Its connections cost nothing before they have sent bytes.
  const early = openAt(
    options,
    (host) => listenPolledTcp(host, PATIENT_BACKLOG),
  );
  if (early === undefined) {
    return listenTcp(options, {
      use,
      onConnection: (stream) => admitPlatformStream(stream, acceptQueue),
      onProblem,
    });
  }
  const opened = new AcceptQueue(early, { ...acceptQueue, use, onProblem });
  const { hostname, port } = early.address;
  return {
    address: hostPort(hostname, port),
    port,
    close: () => opened.close(),
  };
}

/**
 * Listens where every peer shows a certificate: it is known after the handshake,
 * so nobody waits for the faults of others of its source.
 *
 * @throws {ListenError}
 */
export function listenCertified(
  options: Omit<SecureListenerOptions, "clientCertificate" | "use">,
  events: SecurePortEvents,
): BoundListener {
  const onProblem = (line: string) => events.onProblem(line);
  const acceptor = new TlsAcceptor({
    ...options,
    clientCertificate: "required",
    onProblem,
  });
  const onConnection = (stream: Stream) => {
    const onEvicted = () => stream.close();
    const admitted = options.limiter.enter(stream.remoteAddress, onEvicted);
    if (admitted === undefined) return stream.close();
    doHandshake({ stream, admitted, onEvicted }, acceptor, {
      ...events,
      onConnection(secure) {
        admitted.known();
        events.onConnection(secure, admitted);
      },
    });
  };
  return listenTcp(options, { isPatient: true, onConnection, onProblem });
}

/** @throws {ListenError} A limit would be broken in silence. */
function refuseSuites(
  { hostname, port }: SecureListenerOptions,
  acceptor: TlsAcceptor,
): void {
  if (acceptor.canServe) return;
  const at = hostPort(hostname, port);
  throw new ListenError(
    "other",
    at,
    `Cannot limit TLS on ${at} to the cipher suites given: OpenSSL cannot use ` +
      "its certificate, and the platform's TLS takes no list",
  );
}

/** The admission ends with the connection. */
function doHandshake(
  admittedStream: AdmittedStream,
  acceptor: TlsAcceptor,
  events: SecurePortEvents,
): void {
  const { stream, admitted } = admittedStream;
  let isEvicted = false;
  let close = () => stream.close();
  admittedStream.onEvicted = () => {
    isEvicted = true;
    close();
  };
  const leave = () => {
    // Another owner has the descriptor then.
    admitted.linger = () => {};
    admitted.leave();
  };
  const handshake = acceptor.accept(stream, leave).then(
    (secure) => {
      // Its place went to another in this very turn.
      if (isEvicted) return secure.close();
      close = () => secure.close();
      events.onConnection(secure, admitted);
    },
    // Its place was needed for another; that is not reported.
    (error) => isEvicted || events.onRefused(error),
  );
  unawaited("handshake", handshake, () => close());
}

/** Admits a connection when it is its turn, or closes it. */
function admitPlatformStream(
  stream: Stream,
  { limiter, queue, admit }: Omit<AcceptQueueOptions, "use" | "onProblem">,
): void {
  let isGone = false;
  let evict = () => {
    isGone = true;
    stream.close();
  };
  const admitted = limiter.arrive(stream.remoteAddress, () => evict());
  if (admitted === undefined) return stream.close();
  const isSlow = !admitted.penalty!.takeTry(systemTimers.now());
  if (isSlow) admitted.refusePenalized();
  if (isSlow || !admitted.takeHandshake()) {
    admitted.leave();
    return stream.close();
  }
  tuneLink(stream);
  const onEvicted = () => stream.close();
  const admittedStream: AdmittedStream = { stream, admitted, onEvicted };
  const begin = () => {
    evict = () => admittedStream.onEvicted();
    guarded("accept", () => admit(admittedStream), () => evict());
  };
  queue.add({ isGone: () => isGone, begin });
}

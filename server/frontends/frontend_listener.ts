/**
 * Where callers connect: a unix socket, or TCP with mutual TLS.
 *
 * Accepts connections and their handshakes; what they ask for is the port's.
 *
 * @module
 */

import {
  type BoundListener,
  listenTcp,
  listenUnix,
} from "../../net/listen/listeners.ts";
import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import type { Guest, Intake } from "../../net/admission/intake.ts";
import { WaitingRoom } from "../../net/admission/waiting_room.ts";
import { TlsAcceptor } from "../../net/tls/tls_acceptor.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type {
  CredentialFiles,
  Credentials,
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
  readonly intake: Intake;
  /** Loads files that are read again when they change. */
  load(files: CredentialFiles): Credentials;
  /** A connection that may speak; over TCP it has shown its certificate. */
  accept(stream: Stream, guest: Guest): void;
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
    const room = new WaitingRoom<Caller>({
      timers: systemTimers,
      random: Math.random,
      letIn: ({ stream, guest, deadline }) => {
        deadline.cancel();
        options.accept(stream, guest);
      },
    });
    return await listenUnix(listen.path, {
      onConnection: (conn) => acceptPlain(conn, options, room),
      onProblem,
    }, listen.deleteExisting);
  }
  const credentials = options.load({
    cert: listen.keyPair.certFile,
    key: listen.keyPair.keyFile,
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
  readonly guest: Guest;
  readonly deadline: Timer;
}

/**
 * The socket's mode decides who may open it. Where the system knows which process
 * it is, one that breaks rules is slowed down, and no other.
 */
function acceptPlain(
  stream: Stream,
  { intake, accept }: FrontendListenerOptions,
  room: WaitingRoom<Caller>,
): void {
  const { pid } = stream.peerCredentials() ?? {};
  const guest = intake.enter(undefined, () => stream.close(), pid);
  if (guest === undefined) return stream.close();
  stream.onClosed = () => guest.leave();
  const { brake } = guest;
  if (brake === undefined || !brake.isOn(systemTimers.now())) {
    return accept(stream, guest);
  }
  const deadline = systemTimers.after(CONNECT_HEAD_TIMEOUT_MS, () => {
    room.leave(brake, caller);
    stream.close();
  });
  const caller: Caller = { stream, guest, deadline };
  if (room.wait(brake, caller)) return;
  deadline.cancel();
  guest.refuseBraked();
  stream.close();
}

async function acceptTls(
  conn: Stream,
  acceptor: TlsAcceptor,
  options: FrontendListenerOptions,
): Promise<void> {
  const { intake, accept, refused } = options;
  const guest = intake.enter(conn.remoteAddress, () => conn.close());
  if (guest === undefined) return conn.close();
  try {
    const stream = await acceptor.accept(conn, () => guest.leave());
    guest.known();
    accept(stream, guest);
  } catch (error) {
    if (!(error instanceof TlsHandshakeError)) throw error;
    refused(error.message);
  }
}

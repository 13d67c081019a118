/**
 * Agents' TLS by OpenSSL, over sockets of the C library.
 *
 * @module
 */

import type { Arrival } from "../intake/doorway.ts";
import type { Guest } from "../intake/intake.ts";
import type { LibSsl } from "../libssl/library.ts";
import { SecureContext } from "../libssl/secure_context.ts";
import { SecureSession } from "../libssl/secure_session.ts";
import { systemTimers } from "../process/system_timers.ts";
import { openLibc } from "../sockets/libc/libc.ts";
import { PolledSocket } from "../sockets/polled/polled_socket.ts";
import { sharedPoller } from "../sockets/polled/poller.ts";
import { shakeHands } from "../sockets/polled/secure_handshake.ts";
import { StreamDescriptor } from "../sockets/polled/stream_descriptor.ts";
import { socketTransport } from "../sockets/socket_transport.ts";
import { holderOf } from "../tls/client_certificate.ts";
import type { Credentials, TlsMaterial } from "../tls/credentials.ts";
import { serverHandshakeError } from "../tls/tls_errors.ts";
import type { AgentPortEvents, AgentPortOptions } from "./agent_listener.ts";

/** See the module description. */
export class OpensslAgents {
  readonly #options: AgentPortOptions;
  readonly #events: AgentPortEvents;
  readonly #contexts: Contexts;

  /** @returns `undefined`: what agents are to be shown is not for this library. */
  static open(
    library: LibSsl,
    options: AgentPortOptions,
    events: AgentPortEvents,
  ): OpensslAgents | undefined {
    const contexts = new Contexts(library, options, events);
    const { credentials, named } = options;
    const isUsable = contexts.of(credentials) !== undefined &&
      (named === undefined || contexts.of(named.credentials) !== undefined);
    return isUsable ? new OpensslAgents(options, events, contexts) : undefined;
  }

  private constructor(
    options: AgentPortOptions,
    events: AgentPortEvents,
    contexts: Contexts,
  ) {
    this.#options = options;
    this.#events = events;
    this.#contexts = contexts;
  }

  /** The guest leaves when the connection ends. */
  begin(arrival: Arrival, guest: Guest): void {
    const controller = new AbortController();
    const { signal } = controller;
    const { handshakeTimeoutMs } = this.#options;
    const deadline = systemTimers.after(
      handshakeTimeoutMs,
      () => controller.abort(TIMED_OUT),
    );
    arrival.onEvicted = () => controller.abort(EVICTED);
    const leave = () => {
      // The descriptor is somebody else's then.
      guest.linger = () => {};
      guest.leave();
    };
    const session = this.#session();
    this.#shakeHands(arrival, session, signal).then((socket) => {
      deadline.cancel();
      arrival.onEvicted = () => socket.close();
      socket.onClosed = leave;
      this.#events.onConnection(socketTransport(socket), guest);
    }, (error) => {
      deadline.cancel();
      leave();
      if (error === EVICTED) return;
      const { refusedCertificate: shown } = session;
      this.#events.onRefused(
        serverHandshakeError(
          error,
          arrival.remoteAddress,
          shown && holderOf(shown),
        ),
      );
    });
  }

  /** Contexts are made anew when credentials are, so nothing is to be stopped. */
  close(): void {}

  async #shakeHands(
    { descriptor, remoteAddress, localAddress }: Arrival,
    session: SecureSession,
    signal: AbortSignal,
  ): Promise<PolledSocket> {
    // There was one to accept with.
    const [library, poller] = [openLibc()!, sharedPoller()!];
    const stream = new StreamDescriptor(library, poller, descriptor, {
      isTcp: true,
      mayRead: true,
    });
    try {
      const socket = new PolledSocket(stream, { remoteAddress, localAddress });
      return await shakeHands(socket, session, signal);
    } catch (error) {
      session.free();
      throw error;
    }
  }

  #session(): SecureSession {
    const { credentials, named } = this.#options;
    return new SecureSession(this.#contexts.of(credentials)!, {
      contextFor: (name) =>
        name === named?.name ? this.#contexts.of(named.credentials) : undefined,
    });
  }
}

const TIMED_OUT = new Error("TLS handshake timeout");
/** Its place was wanted for another; nobody is told. */
const EVICTED = new Error("evicted");

/** One context for all connections with the same credentials. */
class Contexts {
  readonly #library: LibSsl;
  readonly #options: AgentPortOptions;
  readonly #events: AgentPortEvents;
  readonly #made = new Map<Credentials, MadeContext>();

  constructor(
    library: LibSsl,
    options: AgentPortOptions,
    events: AgentPortEvents,
  ) {
    this.#library = library;
    this.#options = options;
    this.#events = events;
  }

  /** @returns The last that could be made; `undefined`: none could. */
  of(credentials: Credentials): SecureContext | undefined {
    const { current } = credentials;
    const made = this.#made.get(credentials);
    if (made?.material === current) return made.context;
    const context = this.#make(current) ?? made?.context;
    if (context !== undefined) {
      this.#made.set(credentials, { material: current, context });
    }
    return context;
  }

  #make(material: TlsMaterial): SecureContext | undefined {
    const { clientCertificate, alpn, minVersion } = this.#options;
    try {
      return new SecureContext(this.#library, {
        role: { kind: "server", clientCertificate },
        material,
        alpn,
        minVersion,
      });
    } catch (error) {
      const { message } = error as Error;
      this.#events.onProblem(
        `OpenSSL cannot use the agent port's certificate (${message}); ` +
          `${WAY_BACK}`,
      );
      return undefined;
    }
  }
}

const WAY_BACK = "what was used before serves on; TUNNEL_TLS=platform does " +
  "without OpenSSL";

/** What was made, and of what. */
interface MadeContext {
  readonly material: TlsMaterial;
  readonly context: SecureContext;
}

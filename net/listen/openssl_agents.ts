/**
 * Agents' TLS by OpenSSL, over sockets of the C library.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Arrival } from "../admission/doorway.ts";
import type { Guest } from "../admission/intake.ts";
import type { LibSsl } from "../tls/openssl/library.ts";
import type { SecureContext } from "../tls/openssl/secure_context.ts";
import { contextOf } from "../tls/openssl/secure_contexts.ts";
import { SecureSession } from "../tls/openssl/secure_session.ts";
import { openLibc } from "../libc/libc.ts";
import { PolledSocket } from "../stream/polled_socket.ts";
import { sharedPoller } from "../poll/poller.ts";
import { handshakeAsServer } from "../tls/openssl/server_handshake.ts";
import { StreamDescriptor } from "../stream/stream_descriptor.ts";
import { socketTransport } from "../stream/socket_transport.ts";
import type { Credentials, TlsMaterial } from "../tls/trust/credentials.ts";
import { serverHandshakeError } from "../tls/trust/tls_errors.ts";
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
    let isEvicted = false;
    let evict = () => {};
    arrival.onEvicted = () => {
      isEvicted = true;
      evict();
    };
    const leave = () => {
      // The descriptor is somebody else's then.
      guest.linger = () => {};
      guest.leave();
    };
    try {
      const socket = socketOf(arrival);
      evict = () => socket.close();
      const shaken = this.#doHandshake(socket, leave).then(
        (secure) => {
          // Its place went to another in this very turn.
          if (isEvicted) return secure.close();
          const transport = socketTransport(secure);
          // So that who rides on it hears of it.
          evict = () => transport.close();
          this.#events.onConnection(transport, guest);
        },
        // Its place was wanted for another; nobody is told.
        (error) => isEvicted || this.#events.onRefused(error),
      );
      unawaited("handshake", shaken, () => evict());
    } catch (error) {
      leave();
      const { remoteAddress } = arrival;
      this.#events.onRefused(serverHandshakeError(error, remoteAddress));
    }
  }

  /** Contexts are made anew when credentials are, so nothing is to be stopped. */
  close(): void {}

  #doHandshake(
    socket: PolledSocket,
    closed: () => void,
  ): Promise<PolledSocket> {
    const { handshakeTimeoutMs: timeoutMs } = this.#options;
    return handshakeAsServer(socket, () => this.#session(), {
      timeoutMs,
      closed,
    });
  }

  #session(): SecureSession {
    const { credentials, named } = this.#options;
    return new SecureSession(this.#contexts.of(credentials)!, {
      contextFor: (name) =>
        name === named?.name ? this.#contexts.of(named.credentials) : undefined,
    });
  }
}

/** @throws {Error} Nobody can wait for it; the descriptor is closed then. */
function socketOf(
  { descriptor, remoteAddress, localAddress }: Arrival,
): PolledSocket {
  // There was one to accept with.
  const [library, poller] = [openLibc()!, sharedPoller()!];
  const stream = new StreamDescriptor(library, poller, descriptor, {
    isTcp: true,
    mayRead: true,
  });
  return new PolledSocket(stream, { remoteAddress, localAddress });
}

/** For each credentials the newest that can be used. */
class Contexts {
  readonly #library: LibSsl;
  readonly #options: AgentPortOptions;
  readonly #events: AgentPortEvents;
  readonly #used = new Map<Credentials, SecureContext>();
  readonly #refused = new WeakSet<TlsMaterial>();

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
    const { clientCertificate, alpn, minVersion, tls12Suites } = this.#options;
    const { current: material } = credentials;
    const context = contextOf(this.#library, {
      role: { kind: "server", clientCertificate },
      material,
      alpn,
      minVersion,
      ...(tls12Suites === undefined ? {} : { tls12Suites }),
    });
    if (context instanceof Error) this.#tell(material, context);
    else this.#used.set(credentials, context);
    return this.#used.get(credentials);
  }

  #tell(material: TlsMaterial, { message }: Error): void {
    if (this.#refused.has(material)) return;
    this.#refused.add(material);
    this.#events.onProblem(
      `OpenSSL cannot use the agent port's certificate (${message}); ` +
        `${WAY_BACK}`,
    );
  }
}

const WAY_BACK = "what was used before serves on; TUNNEL_TLS=platform does " +
  "without OpenSSL";

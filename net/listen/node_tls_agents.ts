/**
 * Agents' TLS by `node:tls`, for machines without OpenSSL.
 *
 * @module
 */

import net from "node:net";
import tls from "node:tls";
import type { Arrival } from "../admission/doorway.ts";
import type { Guest } from "../admission/intake.ts";
import type { TlsDoor } from "../admission/tls_door.ts";
import {
  guarded,
  INTERNAL_ERROR,
} from "../../platform/errors/internal_errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { mayTakeDescriptor } from "../libc/free_descriptors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { nodeTlsTransport } from "../tls/node/node_tls_transport.ts";
import { refuseClient } from "../tls/trust/client_certificate.ts";
import type { TlsMaterial } from "../tls/trust/credentials.ts";
import { serverHandshakeError } from "../tls/trust/tls_errors.ts";
import { watchAcceptQueue } from "./accept_watchdog.ts";
import type { AgentPortEvents, AgentPortOptions } from "./agent_listener.ts";
import { listenError } from "../bind/listen_error.ts";
import type { BoundListener } from "./listeners.ts";
import { Reopener } from "./reopen.ts";

/** Shakes hands with those whom the doorway lets in. */
export class NodeTlsAgents {
  readonly #server: tls.Server;
  readonly #door: TlsDoor;
  readonly #stopReloads: () => void;

  constructor(
    options: AgentPortOptions,
    events: AgentPortEvents,
    door: TlsDoor,
  ) {
    this.#door = door;
    this.#server = tlsServer(options, events, door, true);
    this.#stopReloads = options.credentials.onChange((material) =>
      this.#server.setSecureContext(secureOptions(options, material))
    );
  }

  /** The guest leaves when the connection ends. */
  begin(arrival: Arrival, guest: Guest): void {
    const { descriptor } = arrival;
    const socket = new net.Socket({ fd: descriptor, allowHalfOpen: true });
    arrival.onEvicted = () => socket.destroy();
    // The descriptor is somebody else's then.
    socket.once("close", () => guest.linger = () => {});
    this.#door.expect(socket, guest);
    socket.setNoDelay(true);
    this.#server.emit("connection", socket);
  }

  close(): void {
    this.#stopReloads();
  }
}

/**
 * Listens without a doorway, where there is no C library to accept with.
 *
 * @param door Counts whoever connects; without it nobody does.
 * @throws {ListenError}
 */
export async function listenNodeAgents(
  options: AgentPortOptions,
  events: AgentPortEvents,
  door?: TlsDoor,
): Promise<BoundListener> {
  const server = tlsServer(options, events, door, false);
  const letIn = (socket: net.Socket) => {
    socket.setNoDelay(true);
    server.emit("connection", socket);
  };
  // A listener of its own: whom there is no room for costs no handshake.
  const listener = net.createServer({ allowHalfOpen: true });
  let accepted = 0;
  listener.on("connection", (socket: net.Socket) => {
    accepted++;
    if (!mayTakeDescriptor("link")) return void socket.destroy();
    if (door === undefined) letIn(socket);
    else door.knock(socket, letIn);
  });
  await listenNode(listener, options.hostname, options.port);
  const bound = listener.address() as { address: string; port: number };
  const stopReloads = options.credentials.onChange((material) =>
    server.setSecureContext(secureOptions(options, material))
  );
  const stopWatching = keepOpen(listener, bound, () => accepted, events);
  return {
    address: hostPort(bound.address, bound.port),
    port: bound.port,
    close: () => {
      stopReloads();
      stopWatching();
      listener.close();
    },
  };
}

/** TLS of the agent port, for connections that `door` let in. */
function tlsServer(
  options: AgentPortOptions,
  events: AgentPortEvents,
  door: TlsDoor | undefined,
  isTuned: boolean,
): tls.Server {
  const { credentials, clientCertificate, named } = options;
  const contexts = new WeakMap<TlsMaterial, tls.SecureContext>();
  // To make one takes half as long as a handshake, and there is one for each.
  const contextOf = (material: TlsMaterial) => {
    let context = contexts.get(material);
    if (context === undefined) {
      context = tls.createSecureContext(secureOptions(options, material));
      contexts.set(material, context);
    }
    return context;
  };
  const server = tls.createServer({
    ...secureOptions(options, credentials.current),
    requestCert: clientCertificate !== "none",
    // Verified all the same; `refuseClient` decides and can say why, which
    // the platform cannot once it has refused by itself.
    rejectUnauthorized: false,
    ALPNProtocols: [...options.alpn],
    handshakeTimeout: options.handshakeTimeoutMs,
    allowHalfOpen: true,
    ...(named === undefined ? {} : {
      SNICallback: (name: string, answer: SniAnswer) => {
        const choose = () => {
          const { current } = name === named.name
            ? named.credentials
            : credentials;
          answer(null, contextOf(current));
        };
        const refuse = () => answer(new Error(INTERNAL_ERROR));
        guarded("handshake", choose, refuse);
      },
    }),
  } as tls.TlsOptions);
  server.on("tlsClientError", (error: Error, socket: tls.TLSSocket) => {
    guarded("handshake", () => {
      const remote = remoteOf(socket);
      socket.destroy();
      events.onRefused(serverHandshakeError(error, remote));
    });
  });
  const welcome = (socket: tls.TLSSocket) => {
    const guest = door?.came(socket);
    const refusal = refuseClient(
      socket,
      clientCertificate,
      credentials.current.ca,
      remoteOf(socket),
    );
    if (refusal === undefined) {
      return events.onConnection(nodeTlsTransport(socket, { isTuned }), guest);
    }
    socket.on("error", () => {}); // It is refused already.
    socket.destroy();
    events.onRefused(refusal);
  };
  server.on(
    "secureConnection",
    (socket: tls.TLSSocket) =>
      guarded("handshake", () => welcome(socket), () => socket.destroy()),
  );
  return server;
}

function secureOptions({ minVersion }: AgentPortOptions, from: TlsMaterial) {
  return {
    cert: from.cert,
    key: from.key,
    minVersion,
    // Repeated at each reload, or every client would be refused after it.
    ...(from.ca === "" ? {} : { ca: [from.ca] }),
  };
}

/**
 * Connections that the kernel holds for us. All of them are accepted in one
 * turn, in which nobody else has one, and an accept costs 70 µs; what does not
 * fit comes again a second later.
 */
const BACKLOG = 256;

type SniAnswer = (error: Error | null, context?: tls.SecureContext) => void;

/** Opens a listener again that has stopped accepting. @returns How to end it. */
function keepOpen(
  server: net.Server,
  bound: { readonly address: string; readonly port: number },
  accepted: () => number,
  events: Pick<AgentPortEvents, "onProblem">,
): () => void {
  const address = hostPort(bound.address, bound.port);
  const onProblem = (line: string) => events.onProblem(line);
  const reopener = new Reopener({
    timers: systemTimers,
    random: Math.random,
    open: () => listenNode(server, bound.address, bound.port),
    close: () => void server.close(),
    onFailure: ({ message }) => onProblem(`${message}; trying again`),
    onOpen: () => onProblem(`Accepting on ${address} again`),
  });
  const stopWatching = watchAcceptQueue(
    bound.port,
    systemTimers,
    accepted,
    () => {
      if (reopener.isOpening) return;
      onProblem(
        `Cannot accept on ${address}: the listener is stuck, probably for want ` +
          `of file descriptors; opening it again`,
      );
      server.close();
      reopener.start();
    },
  );
  server.on("error", (error: Error) => {
    if (!reopener.isOpening) onProblem(error.message);
  });
  return () => {
    stopWatching();
    reopener.stop();
  };
}

function listenNode(
  server: net.Server,
  host: string,
  port: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) =>
      reject(listenError(hostPort(host, port), error));
    server.once("error", onError);
    const at = { port, ...(host === "" ? {} : { host }), backlog: BACKLOG };
    server.listen(at, () => {
      server.off("error", onError);
      resolve();
    });
  });
}

function remoteOf(socket: tls.TLSSocket): string {
  // After a failed handshake the TLS socket knows nothing any more, but the
  // TCP socket below it does; there is no documented way from one to the other.
  const { _parent: below } = socket as { _parent?: net.Socket };
  const { remoteAddress, remotePort } = socket.remoteAddress === undefined
    ? below ?? socket
    : socket;
  if (remoteAddress === undefined) return "an unknown address";
  return hostPort(
    remoteAddress,
    remotePort ?? 0,
  );
}

/**
 * Listens for agents: TLS behind a doorway that costs unauthenticated peers
 * more than us.
 *
 * TLS is OpenSSL's where this machine has it (`openssl_agents.ts`), else the
 * platform's (`node_tls_agents.ts`).
 *
 * @module
 */

import type { SecureVersion } from "node:tls";
import { type Arrival, openDoorway } from "../admission/doorway.ts";
import type { Guest, Intake } from "../admission/intake.ts";
import { TlsDoor } from "../admission/tls_door.ts";
import { openLibssl } from "../tls/openssl/library.ts";
import type { TlsChoice } from "../tls/openssl/tls_choice.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import {
  listenPolledTcp,
  type PolledListener,
} from "../bind/polled_listener.ts";
import type { ClientCertificateRule } from "../tls/trust/client_certificate.ts";
import type { Credentials } from "../tls/trust/credentials.ts";
import type { TlsHandshakeError } from "../tls/trust/tls_errors.ts";
import type { Transport } from "../stream/transport.ts";
import { ListenError } from "../bind/listen_error.ts";
import {
  type BoundListener,
  type ListenAddress,
  openAt,
  PATIENT_BACKLOG,
} from "./listeners.ts";
import { listenNodeAgents, NodeTlsAgents } from "./node_tls_agents.ts";
import { OpensslAgents } from "./openssl_agents.ts";

/** How the agent port presents itself. */
export interface AgentPortOptions extends ListenAddress {
  /** With certificate and key; its CA verifies agents. */
  readonly credentials: Credentials;
  readonly clientCertificate: ClientCertificateRule;
  /** By preference. */
  readonly alpn: readonly string[];
  readonly minVersion: SecureVersion;
  /** See `SecureContextOptions`; the platform's TLS knows no such limit. */
  readonly tls12Suites?: readonly string[];
  readonly handshakeTimeoutMs: number;
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
  /** Counts whoever connects; without it nobody does. */
  readonly intake?: Intake;
  /** Shown instead to clients that ask for this name (SNI, RFC 6066 §3). */
  readonly named?: {
    readonly name: string;
    readonly credentials: Credentials;
  };
}

/** What happens on the agent port. */
export interface AgentPortEvents {
  /**
   * Call `start` on the transport before returning: see `nodeTlsTransport`.
   *
   * @param guest As the intake counts it, if there is one.
   */
  onConnection(transport: Transport, guest: Guest | undefined): void;
  /** A handshake that failed; the connection is gone. */
  onRefused(error: TlsHandshakeError): void;
  onProblem(line: string): void;
}

/** Shakes hands with those whom the doorway lets in. */
interface AgentTls {
  /** The guest leaves when the connection ends. */
  begin(arrival: Arrival, guest: Guest): void;
  /** New credentials are not followed any more. */
  close(): void;
}

/**
 * Listens for agents. New credentials are used for the next handshake.
 *
 * @throws {ListenError}
 */
export async function listenAgentPort(
  options: AgentPortOptions,
  events: AgentPortEvents,
): Promise<BoundListener> {
  const { intake } = options;
  if (intake === undefined) return await listenNodeAgents(options, events);
  const door = new TlsDoor(intake, systemTimers);
  const early = openEarly(options);
  if (early === undefined) {
    refuseSuites(options);
    return await listenNodeAgents(options, events, door);
  }
  const tls = agentTls(options, events, door);
  const doorway = openDoorway(early, {
    intake,
    door,
    timers: systemTimers,
    random: Math.random,
    helloTimeoutMs: options.handshakeTimeoutMs,
    letIn: (arrival, guest) => tls.begin(arrival, guest),
    onProblem: (line) => events.onProblem(line),
  });
  const { hostname, port } = early.address;
  return {
    address: hostPort(hostname, port),
    port,
    close: () => {
      tls.close();
      doorway.close();
    },
  };
}

/** @throws {ListenError} A limit would be broken in silence. */
function refuseSuites({ hostname, port, tls12Suites }: AgentPortOptions): void {
  if (tls12Suites === undefined) return;
  const at = hostPort(hostname, port);
  throw new ListenError(
    "other",
    at,
    `Cannot limit TLS on ${at} to the cipher suites given: OpenSSL cannot use ` +
      "its certificate, and the platform's TLS takes no list",
  );
}

function agentTls(
  options: AgentPortOptions,
  events: AgentPortEvents,
  door: TlsDoor,
): AgentTls {
  const library = options.tls === "platform" ? undefined : openLibssl();
  const openssl = library &&
    OpensslAgents.open(library, options, events);
  if (openssl === undefined) refuseSuites(options);
  return openssl ?? new NodeTlsAgents(options, events, door);
}

/**
 * A listener whose connections cost nothing before they have said something.
 *
 * @returns `undefined` where there is none such.
 * @throws {ListenError}
 */
function openEarly(at: ListenAddress): PolledListener | undefined {
  return openAt(at, (host) => listenPolledTcp(host, PATIENT_BACKLOG));
}

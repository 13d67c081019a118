/**
 * A link of the streams carrier, as the server holds it.
 *
 * Layer: link. The HTTP/2 roles are reversed: the server calls the agent, once
 * for control and once per conduit, so each conduit has a flow-control window
 * of its own. Reading order: `openStreamsServer`, then `StreamsServerLink`.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import type { ClientCall, ClientCallEvents } from "../grpc/call.ts";
import { requestHead, startCall } from "../grpc/client.ts";
import { MessageReader } from "../grpc/message_reader.ts";
import {
  GrpcError,
  type Status,
  StatusCode,
  statusName,
} from "../grpc/status.ts";
import { NEAR_MS } from "../streams/liveness.ts";
import type { Timer, Timers } from "../sync/clock.ts";
import {
  ControlError,
  decodeAgentEvent,
  encodeServerEvent,
  type ServerEvent,
} from "./control_messages.ts";
import {
  type AgentHello,
  type AnnouncedService,
  LINK_METHODS,
  type PeerServer,
  type ServerHello,
  type ServiceRefusal,
} from "./link_messages.ts";
import { dialIdOf } from "./dial_handler.ts";
import { type CallObserver, dialProxy, proxyHead } from "./proxy_client.ts";
import {
  CONTROL_MESSAGE_BYTES_MAX,
  HELLO_DEADLINE_MS,
  LinkDeclinedError,
  LinkError,
  LinkRefusedError,
  versionProblem,
} from "./hello.ts";
import { parseIdentifiers } from "../peer/identifiers.ts";
import { type PeerIdentity, readInstanceId } from "../peer/peer_identity.ts";
import { kept } from "../peer/quoted.ts";
import {
  formatTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../peer/trace_context.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { DialTarget } from "../peer/dial_error.ts";
import {
  type AgentLink,
  ConnectedLink,
  type DialEvents,
  type LinkAuthorization,
  type LinkConnection,
  type LinkDialOptions,
  type LinkPeer,
  type LinkRefusal,
  type PacketObserver,
  type PendingDial,
  whenDecided,
} from "./link.ts";

/** See {@linkcode openStreamsServer}. */
export interface StreamsServerOptions {
  readonly hello: ServerHello;
  readonly timers: Timers;
  readonly remoteAddress: string;
  readonly identity: PeerIdentity;
  readonly observer?: PacketObserver;
  /** Whether this agent may connect. */
  readonly admit?: (peer: LinkPeer, hello: AgentHello) => LinkAuthorization;
  /** An agent whose link stands announces other services, or its drain. */
  readonly onChanged?: (link: AgentLink) => void;
  /** The agent has sent which authorities it trusts, by their ids. */
  readonly onTrust?: (link: AgentLink, authorities: readonly string[]) => void;
  /** The link is over; called once, and only after it was handed out. */
  readonly onClosed?: (link: AgentLink, reason: string) => void;
}

/**
 * Longest name of an agent's software that is known further: it is in the answers
 * of the admin API as long as the node is remembered.
 */
const SOFTWARE_LENGTH_MAX = 253;

/**
 * Longest id of an agent: it is in logs, in labels, and in each answer about
 * nodes. A name of DNS has 253 characters at most.
 */
const AGENT_ID_LENGTH_MAX = 1_024;

/** `:authority` of all calls on a link; agents do not look at it. */
const AUTHORITY = "agent";

/** What the calls on a link have in common. */
const CALL = { authority: AUTHORITY, scheme: "https" } as const;

// One object for all links each, so that encoders have a common history: none
// needs a table of its own, which is 3 KiB of a quiet link.
const CONTROL_HEAD = requestHead({ path: LINK_METHODS.control, ...CALL });
const DIAL_HEAD = proxyHead(CALL);

function tracedHead(trace: TraceContext): readonly HeaderField[] {
  const value = formatTraceparent(trace);
  return [...DIAL_HEAD, { name: TRACEPARENT_FIELD, value }];
}

/** RFC 9113 §7. */
const NO_ERROR = 0;

/**
 * How long an agent may take to end its control call once it has the reason.
 */
export const CLOSE_GRACE_MS = 5_000;

/**
 * Makes a link of a fresh connection: exchanges hellos, then hands it out.
 *
 * @throws {LinkError} If the agent sends no proper hello within
 *   {@linkcode HELLO_DEADLINE_MS}, or is not admitted. The agent is sent the
 *   reason and the connection is shut down.
 */
export function openStreamsServer(
  connection: LinkConnection,
  options: StreamsServerOptions,
): Promise<StreamsServerLink> {
  return new Promise((resolve, reject) => {
    new StreamsServerLink(connection, options, { resolve, reject });
  });
}

/** Receives the outcome of the hello. */
interface PendingLink {
  resolve(link: StreamsServerLink): void;
  reject(error: LinkError): void;
}

export class StreamsServerLink extends ConnectedLink<LinkConnection>
  implements AgentLink, ClientCallEvents, CallObserver {
  readonly #reader: MessageReader;
  #control: ClientCall | undefined;
  #peer: LinkPeer | undefined;
  #deadline: Timer | undefined;
  #state: "hello" | "admission" | "open" | "over" = "hello";
  #isDraining = false;
  #services: readonly AnnouncedService[] = [];
  #dials = 0;
  #load = 0;
  #ending = 0;

  /** Use {@linkcode openStreamsServer}. */
  constructor(
    connection: LinkConnection,
    private readonly options: StreamsServerOptions,
    private pendingLink: PendingLink | undefined,
  ) {
    super(connection);
    this.#reader = new MessageReader({
      messageBytesMax: CONTROL_MESSAGE_BYTES_MAX,
      onMessage: (message) => this.#onMessage(message),
    });
    try {
      const path = LINK_METHODS.control;
      const options = { path, ...CALL, head: CONTROL_HEAD };
      this.#control = startCall(connection, options, this);
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      this.#over(error.message);
      return;
    }
    this.#say({ type: "hello", hello: options.hello });
    this.#deadline = options.timers.after(
      HELLO_DEADLINE_MS,
      () =>
        this.close(
          `the agent said no hello within ${HELLO_DEADLINE_MS / 1000} s`,
        ),
    );
  }

  get peer(): LinkPeer {
    return this.#peer!; // set before the link is handed out
  }

  get isDraining(): boolean {
    return this.#isDraining || !this.connection.isUsable;
  }

  get services(): readonly AnnouncedService[] {
    return this.#services;
  }

  get load(): number {
    return this.#load;
  }

  get ending(): number {
    return this.#ending;
  }

  get isProven(): boolean {
    return this.connection.isProven;
  }

  /** Early bytes save no time when the agent's answer comes as soon. */
  whenAlive(then: () => void): void {
    const connection = this.connection;
    connection.whenAlive(() => {
      if (connection.leastRoundTripMs! >= NEAR_MS) then();
    });
  }

  dial(
    target: DialTarget,
    events: DialEvents,
    options: LinkDialOptions = {},
  ): PendingDial {
    const { timers, observer } = this.options;
    const { id, earlyData, trace } = options;
    this.#load++;
    return dialProxy(this.connection, target, events, {
      authority: AUTHORITY,
      head: trace === undefined ? DIAL_HEAD : tracedHead(trace),
      timers,
      dialId: id === undefined ? ++this.#dials : dialIdOf(id),
      observing: this,
      ...{ observer, earlyData },
    });
  }

  onEnding(): void {
    this.#ending++;
  }

  onOver(wasEnding: boolean): void {
    this.#load--;
    if (wasEnding) this.#ending--;
  }

  /**
   * Announces that this server is leaving: it expects no new work.
   *
   * @param spreadMs Within this time agents look for another server.
   */
  drain(spreadMs: number): void {
    this.#say({ type: "drain", ...(spreadMs > 0 ? { spreadMs } : {}) });
  }

  /** Sends the authorities to trust from now on, PEM; the issuing one first. */
  announceAuthorities(pem: Uint8Array): void {
    this.#say({ type: "ca-bundle", pem });
  }

  /** Sends where the other servers are, and how many there are. */
  announcePeers(
    servers: readonly PeerServer[],
    serverCount: number,
  ): void {
    this.#say({ type: "peer-addresses", servers, serverCount });
  }

  /** Asks the agent to make a new link, after `delayMs`, and drain this one. */
  askToReconnect(reason: string, delayMs: number): void {
    this.#say({ type: "reconnect", reason, delayMs });
  }

  /** See `AgentLink.refuseServices`. */
  refuseServices(refused: readonly ServiceRefusal[]): void {
    this.#say({ type: "service-refusals", refused });
  }

  /** See `AgentLink.warnOfDuplicate`. */
  warnOfDuplicate(message: string): void {
    this.#say({ type: "duplicate-identity", message });
  }

  /** Sends the agent the reason, and ends everything. */
  close(reason: string, code?: Code): void {
    if (this.#state === "over") return;
    this.#say({ type: "refusal", reason, code: code ?? "" });
    this.#over(reason, code);
    this.#endConnection(reason);
  }

  onMetadata(): void {}
  onWritable(): void {}

  onBody(chunk: Uint8Array): void {
    this.#control!.consumed(chunk.length);
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof GrpcError || error instanceof ControlError)) {
        throw error;
      }
      this.close(error.message);
    }
  }

  onStatus(status: Status, _trailers: unknown, lost: boolean): void {
    const detail = status.message || statusName(status.code);
    if (this.#state === "hello" && !lost && status.code === StatusCode.OK) {
      this.#decline(detail);
    }
    this.#over(lost ? detail : `the agent ended the link: ${detail}`);
    this.#endConnection("the control call has ended");
  }

  #onMessage(message: Uint8Array): void {
    if (this.#state === "over") return;
    const event = decodeAgentEvent(message);
    switch (event.type) {
      case "hello":
        return this.#onHello(event.hello);
      case "drain":
        this.#isDraining = true;
        return this.#changed();
      case "services":
        this.#services = event.services;
        return this.#changed();
      case "trust":
        if (this.#state !== "open") return;
        return this.options.onTrust?.(this, event.authorities);
      case "unknown":
        return;
    }
  }

  /** Bytes sent before the link stands are there when it does. */
  #changed(): void {
    if (this.#state === "open") this.options.onChanged?.(this);
  }

  #onHello(hello: AgentHello): void {
    if (this.#state !== "hello") return this.close("a second hello");
    this.#deadline?.cancel();
    this.#deadline = undefined;
    const problem = versionProblem(hello.version, "agent");
    if (problem !== undefined) return this.close(problem);
    if (hello.agentId === "") return this.close("the agent gave no agent id");
    if (hello.agentId.length > AGENT_ID_LENGTH_MAX) {
      return this.close(
        `the agent's id has ${hello.agentId.length} characters, at most ` +
          `${AGENT_ID_LENGTH_MAX} are allowed`,
      );
    }
    const { identity, remoteAddress, admit } = this.options;
    let identifiers;
    try {
      identifiers = parseIdentifiers(hello.identifiers, "server");
    } catch (error) {
      // An IdentifiersError: nothing else comes from there.
      return this.close((error as Error).message);
    }
    const instanceId = readInstanceId(hello.instanceId);
    const peer: LinkPeer = {
      agentId: hello.agentId,
      identifiers,
      identity,
      remoteAddress,
      carrier: "streams",
      software: kept(hello.software, SOFTWARE_LENGTH_MAX),
      instanceId,
    };
    this.#peer = peer;
    this.#services = hello.services;
    this.#state = "admission";
    whenDecided(admit?.(peer, hello), (refusal) => this.#admit(refusal));
  }

  #admit(refusal: LinkRefusal | undefined): void {
    if (this.#state !== "admission") return;
    if (refusal !== undefined) {
      return this.close(refusal.message, refusal.tunnelCode);
    }
    this.#state = "open";
    this.#say({ type: "admission" });
    this.pendingLink?.resolve(this);
    this.pendingLink = undefined;
  }

  /** Nothing went wrong: it has read our hello, and wants no link. */
  #decline(reason: string): void {
    this.#state = "over";
    this.#deadline?.cancel();
    this.pendingLink?.reject(new LinkDeclinedError(reason));
  }

  #over(reason: string, code?: Code): void {
    const before = this.#state;
    if (before === "over") return;
    this.#state = "over";
    this.#deadline?.cancel();
    if (before === "open") this.options.onClosed?.(this, reason);
    else {
      this.pendingLink?.reject(
        code === undefined
          ? new LinkError(reason)
          : new LinkRefusedError(reason, code),
      );
    }
  }

  /** Sent bytes leave first; running conduits are lost. */
  #endConnection(reason: string): void {
    const connection = this.connection;
    connection.shutdown(reason);
    if (this.#load > 0) return connection.abort(NO_ERROR, reason);
    this.options.timers.after(
      CLOSE_GRACE_MS,
      () => connection.abort(NO_ERROR, reason),
    );
  }

  #say(event: Exclude<ServerEvent, { type: "unknown" }>): void {
    if (this.#state !== "over") {
      this.#control?.sendMessage(encodeServerEvent(event));
    }
  }
}

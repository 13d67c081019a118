/**
 * A link of the packets carrier, as the server holds it: one call of
 * `/AgentService/Connect`, from Konnectivity's agents and from ours.
 *
 * Layer: link. Everything is keyed by this call, never by the agent's id: two
 * calls of one agent have equal connectIDs and must not meet.
 *
 * Reading order: `agentService`, `PacketsServerLink.dial`, `#onPacket`.
 *
 * @module
 */

import { codeOfWords, DialError, type DialTarget } from "../peer/dial_error.ts";
import type {
  MethodHandler,
  ServerCall,
  ServerCallEvents,
} from "../grpc/call.ts";
import { NO_EVENTS } from "../grpc/server_call.ts";
import { StatusCode } from "../grpc/status.ts";
import {
  type Data,
  type DialResponse,
  type Int64,
  type Packet,
  PacketError,
} from "../packets/packet.ts";
import type { Timers } from "../sync/clock.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import {
  announceCapabilities,
  formatServers,
  hasCapability,
  SERVERS_FIELD,
} from "./capabilities.ts";
import { dialIdOf, randomDialId, type Randomness } from "./dial_handler.ts";
import { type Identifiers, parseIdentifiers } from "../peer/identifiers.ts";
import {
  INSTANCE_FIELD,
  type PeerIdentity,
  readInstanceId,
} from "../peer/peer_identity.ts";
import {
  type AgentLink,
  ConnectedLink,
  type DialEvents,
  type LinkAuthorization,
  type LinkDialOptions,
  type LinkPath,
  type LinkPeer,
  type LinkRefusal,
  type PacketObserver,
  type PendingDial,
  SILENT_OBSERVER,
  whenDecided,
} from "./link.ts";
import { PacketsMux } from "./packets_mux.ts";
import type { PeerServer } from "./link_messages.ts";

/** See {@linkcode agentService}. */
interface AgentServiceOptions {
  /** Sent as `serverid`. */
  readonly serverId: string;
  /** Sent as `servercount`; called once per link. */
  readonly serverCount: () => number;
  /** The addresses of servers, sent to agents of ours; called once per link. */
  readonly servers?: () => readonly PeerServer[];
  readonly remoteAddress: string;
  readonly identity: PeerIdentity;
  /** The connection, for facts about the path. */
  readonly connection: LinkPath;
  /** For the ids of dials; see `dial_handler.ts`. */
  readonly randomness: Randomness;
  readonly timers: Timers;
  /** Whether this agent may connect. */
  readonly admit?: (peer: LinkPeer, token: string) => LinkAuthorization;
  readonly onLink: (link: AgentLink) => void;
  readonly onLinkClosed: (link: AgentLink, reason: string) => void;
  readonly observer?: PacketObserver;
  /** Largest message accepted; see `PACKET_MESSAGE_BYTES_MAX`. */
  readonly messageBytesMax?: number;
}

/** Serves `/AgentService/Connect` on one connection: each call is a link. */
export function agentService(options: AgentServiceOptions): MethodHandler {
  return (call) => {
    const peer = readPeer(call, options);
    if (typeof peer === "string") {
      // UNKNOWN, as Konnectivity's server answers.
      call.finish({ code: StatusCode.UNKNOWN, message: peer });
      return NO_EVENTS;
    }
    return new PacketsServerLink(call, peer, options);
  };
}

/** The calling agent; a string: the fault of its metadata. */
function readPeer(
  call: ServerCall,
  { identity, remoteAddress }: AgentServiceOptions,
): LinkPeer | string {
  const ids = call.metadata.texts("agentid");
  if (ids.length !== 1) {
    return `expected one agent ID in the context, got [${ids.join(" ")}]`;
  }
  const lists = call.metadata.texts("agentidentifiers");
  if (lists.length > 1) {
    return "expected at most one set of agent identifiers in the context, " +
      `got [${lists.join(" ")}]`;
  }
  let identifiers: Identifiers;
  try {
    identifiers = parseIdentifiers(lists[0] ?? "", "server");
  } catch (error) {
    // An IdentifiersError: nothing else comes from there.
    return (error as Error).message;
  }
  const instanceId = readInstanceId(call.metadata.text(INSTANCE_FIELD));
  return {
    agentId: ids[0]!,
    identifiers,
    identity,
    remoteAddress,
    carrier: "packets",
    software: call.metadata.text("user-agent") ?? "",
    instanceId,
  };
}

/**
 * Dials given up whose answers may still be on the way, and are told from those
 * of others by their numbers. Agents need not answer them, so the oldest go.
 */
const GIVEN_UP_MAX = 1_024;

/** A dial that the agent has not answered. */
interface PendingRequest {
  readonly events: DialEvents;
  readonly earlyData: Uint8Array | undefined;
  readonly datagrams: boolean;
}

class PacketsServerLink extends ConnectedLink
  implements AgentLink, ServerCallEvents {
  readonly #mux: PacketsMux;
  readonly #pending = new Map<Int64, PendingRequest>();
  /** Numbers that no other dial may have for now: a caller may repeat its id. */
  readonly #givenUp = new Set<Int64>();
  #state: "admission" | "open" | "over" = "admission";
  #isDraining = false;

  constructor(
    private readonly call: ServerCall,
    readonly peer: LinkPeer,
    private readonly options: AgentServiceOptions,
  ) {
    super(options.connection);
    this.#mux = new PacketsMux({
      body: call,
      role: "server",
      timers: options.timers,
      observer: options.observer ?? SILENT_OBSERVER,
      onPacket: (packet) => this.#onPacket(packet),
      onOverrun: (reason) => this.#end(StatusCode.RESOURCE_EXHAUSTED, reason),
      messageBytesMax: options.messageBytesMax,
    });
    if (hasCapability(call.metadata, "half-close")) this.#mux.recognisePeer();
    const decision = options.admit?.(peer, call.metadata.bearerToken);
    whenDecided(decision, (refusal) => this.#admit(refusal));
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get load(): number {
    return this.#pending.size + this.#mux.conduits;
  }

  get ending(): number {
    return this.#mux.ending;
  }

  /**
   * Early data waits for the answer: this carrier has no PING that could
   * confirm the agent first.
   */
  get isProven(): boolean {
    return false;
  }

  /** DATA wants a connectID, which comes with the answer. */
  whenAlive(): void {
    this.connection.whenAlive(() => {});
  }

  dial(
    target: DialTarget,
    events: DialEvents,
    { earlyData, id }: LinkDialOptions = {},
  ): PendingDial {
    if (this.#state !== "open") {
      const reason = "the agent's link is over";
      events.onFailed(
        new DialError("link-lost", reason, { loss: "unprocessed" }),
      );
      return { cancel: () => {} };
    }
    let random = id === undefined
      ? randomDialId(this.options.randomness)
      : dialIdOf(id);
    while (this.#pending.has(random) || this.#givenUp.has(random)) {
      random = randomDialId(this.options.randomness);
    }
    const datagrams = target.protocol === "udp";
    this.#pending.set(random, { events, earlyData, datagrams });
    const { protocol, address } = target;
    this.#mux.say({ type: "DIAL_REQ", protocol, address, random });
    return {
      cancel: () => {
        if (!this.#pending.delete(random)) return;
        this.#giveUp(random);
        this.#mux.say({ type: "DIAL_CLS", random });
      },
    };
  }

  #giveUp(random: Int64): void {
    this.#givenUp.add(random);
    if (this.#givenUp.size <= GIVEN_UP_MAX) return;
    for (const oldest of this.#givenUp) {
      return void this.#givenUp.delete(oldest);
    }
  }

  close(reason: string): void {
    if (this.#state === "over") return;
    this.call.finish({ code: StatusCode.UNAVAILABLE, message: reason });
    this.#over(reason);
  }

  onBody(chunk: Uint8Array): void {
    if (this.#state === "admission") {
      return this.#end(
        StatusCode.FAILED_PRECONDITION,
        "Cannot take packets before the response head was sent",
      );
    }
    try {
      this.#mux.push(chunk);
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      this.#end(StatusCode.INVALID_ARGUMENT, error.message);
    }
  }

  onWritable(): void {
    this.#mux.writable();
  }

  onHalfClose(): void {
    this.#end(StatusCode.OK, "the agent ended the link");
  }

  onCancel(reason: { readonly lost: boolean; readonly message: string }): void {
    this.options.observer?.streamFailed?.(
      reason.lost ? StatusCode.UNAVAILABLE : StatusCode.CANCELLED,
    );
    this.#over(reason.message);
  }

  #admit(refusal: LinkRefusal | undefined): void {
    if (this.#state !== "admission") return;
    if (refusal !== undefined) {
      return this.#end(refusal.code, refusal.message);
    }
    const metadata = announceCapabilities();
    metadata.add("serverid", this.options.serverId);
    metadata.add("servercount", String(this.options.serverCount()));
    const servers = this.peer.instanceId === undefined
      ? ""
      : formatServers(this.options.servers?.() ?? []);
    if (servers !== "") metadata.add(SERVERS_FIELD, servers);
    this.call.sendMetadata(metadata);
    this.#state = "open";
    this.options.onLink(this);
  }

  #onPacket(packet: Exclude<Packet, Data>): void {
    switch (packet.type) {
      case "DIAL_RSP":
        return this.#onAnswer(packet);
      case "DIAL_CLS":
        return reportFailed(
          this.#take(packet.random),
          new DialError("dial-closed", "dial closed"),
        );
      case "DRAIN":
        this.#isDraining = true;
        return;
    }
    // DIAL_REQ is not an agent's to send, and unknown types are ignored.
  }

  #onAnswer({ random, error, connectId }: DialResponse): void {
    const request = this.#take(random);
    if (request === undefined) {
      // Cancelled before, or never requested: there is no caller to use it.
      if (connectId === 0) return;
      this.#mux.rememberClosed(connectId);
      const reset = "the caller gave this connection up";
      return this.#mux.say({ type: "CLOSE_REQ", connectId, reset });
    }
    if (error !== "") {
      const code = codeOfWords("endpoint", error);
      return reportFailed(
        request,
        new DialError("endpoint", error, { code }),
      );
    }
    const conduit = connectId === 0
      ? undefined
      : this.#mux.add(connectId, request.datagrams);
    if (conduit === undefined) {
      return reportFailed(
        request,
        new DialError(
          "endpoint",
          `the agent answered with connectID ${connectId}, which is in use`,
        ),
      );
    }
    const { earlyData } = request;
    if (earlyData !== undefined && earlyData.length > 0) {
      if (request.datagrams) {
        this.#mux.sender.sendDatagram(connectId, earlyData);
      } else this.#mux.sender.sendWhole(connectId, earlyData);
    }
    try {
      request.events.onConnected(conduit);
    } catch (error) {
      reportFault("link", error);
      conduit.reset(INTERNAL_ERROR);
    }
  }

  #take(random: Int64): PendingRequest | undefined {
    const request = this.#pending.get(random);
    this.#pending.delete(random);
    this.#givenUp.delete(random);
    return request;
  }

  #end(code: StatusCode, reason: string): void {
    if (this.#state === "over") return;
    if (code !== StatusCode.OK) this.options.observer?.streamFailed?.(code);
    this.call.finish({ code, message: reason });
    this.#over(reason);
  }

  #over(reason: string): void {
    if (this.#state === "over") return;
    const wasOpen = this.#state === "open";
    this.#state = "over";
    // First out of the registry, then the event: no dial reaches a dead link.
    if (wasOpen) this.options.onLinkClosed(this, reason);
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const request of pending) {
      reportFailed(
        request,
        new DialError("link-lost", reason, { loss: "unanswered" }),
      );
    }
    this.#mux.lose(reason);
  }
}

/**
 * An error in the caller's code does not affect the other conduits of the link.
 */
function reportFailed(
  request: PendingRequest | undefined,
  error: DialError,
): void {
  try {
    request?.events.onFailed(error);
  } catch (fault) {
    reportFault("link", fault);
  }
}

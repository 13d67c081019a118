/**
 * Makes one link to a server: TLS, then the carrier that ALPN chose, then both
 * hellos.
 *
 * @module
 */

import { openServerConnection } from "../../net/http2/server_connection.ts";
import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { probePeer } from "../../net/libc/tcp_options.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { VERSION } from "../../platform/process/version.ts";
import { ErrorCode } from "../../proto/frames/wire_error.ts";
import { CAPABILITIES } from "../../proto/link/capabilities.ts";
import type { ServerEvent } from "../../proto/link/control_messages.ts";
import type {
  AgentHello,
  AnnouncedService,
  ServiceRefusal,
} from "../../proto/link/link_messages.ts";
import type { DialHandler } from "../../proto/link/dial_handler.ts";
import {
  HTTP2_ALPN,
  LINK_VERSION,
  LinkError,
  STREAMS_ALPN,
} from "../../proto/link/hello.ts";
import {
  formatIdentifiers,
  type Identifiers,
} from "../../proto/peer/identifiers.ts";
import type { Carrier, PacketObserver } from "../../proto/link/link.ts";
import {
  ForeignPings,
  LINK_CONDUITS_MAX,
  LINK_LIMITS,
  linkKeepalive,
} from "../../proto/link/link_limits.ts";
import { PacketsAgentLink } from "../../proto/link/packets_agent.ts";
import {
  type AgentControl,
  serveStreamsAgent,
} from "../../proto/link/streams_agent.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { ConnectionEnd } from "../../proto/streams/connection_events.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import {
  LARGE_FRAME_SIZE,
  type LocalSettings,
} from "../../proto/streams/settings.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { UnheardError } from "../identity/enrolment_error.ts";
import type { ServerName } from "./held_links.ts";
import type {
  AttemptEvents,
  LinkPulse,
  PeerNews,
  ServerLink,
} from "./agent_links.ts";

/** What `Connector` needs from outside. */
interface ConnectorOptions {
  readonly agentId: string;
  readonly identifiers: Identifiers;
  /**
   * The id of this process; the same on all its links. See `peer_identity.ts`.
   */
  readonly instanceId?: string;
  /** A server sees another process with this node's identity, too. */
  readonly onDuplicate?: (message: string) => void;
  /** What this node serves for others now; the same array until it differs. */
  readonly services?: () => readonly AnnouncedService[];
  /** A server does not take some of them. */
  readonly onServicesRefused?: (refused: readonly ServiceRefusal[]) => void;
  /** They cannot be announced over the packets carrier. */
  readonly notAnnounced?: (serverId: string) => void;
  /** Read for each link: shown beside the certificate. */
  readonly token?: (() => Promise<string>) | undefined;
  /** ALPN names that mean `h2`, offered before it. */
  readonly alpnProtocols: readonly string[];
  /** Carriers offered to the server. */
  readonly carriers: readonly Carrier[];
  /** `:authority` of the packets carrier's call. */
  readonly authority: string;
  /** PING after this long without a sign of life. */
  readonly keepaliveMs: number;
  readonly messageBytesMax: number;
  /** Shared with every connection of the process. */
  readonly receiveBudget: ReceiveBudget;
  /** For links of the streams carrier. For tests of other windows. */
  readonly linkSettings?: Partial<LocalSettings>;
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly onDial: DialHandler;
  /**
   * Connects with TLS, offering these ALPN names; rejects with a sentence.
   * `signal` gives up before there is a stream; `use` gets the stream, and its
   * rejection is a failure of that server.
   */
  openStream<T>(
    alpn: readonly string[],
    use: (stream: Stream) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>;
  /**
   * The server sends the authorities to trust from now on, PEM; the issuing one
   * first.
   *
   * @returns The ids of the authorities that are trusted now.
   */
  readonly onAuthorities?:
    | ((
      bundle: Uint8Array,
    ) => Promise<readonly string[]>)
    | undefined;
  /** The server is ours, but something on the way took our ALPN name away. */
  fellBack(serverId: string): void;
}

/** No link to this server is wanted. */
class UnwantedServerError extends LinkError {
  override readonly tunnelCode: Code = "TUN403";
}

export class Connector {
  readonly #foreignPings = new ForeignPings();
  #linkIndex = 0;

  constructor(private readonly options: ConnectorOptions) {}

  /**
   * @param signal Gives up, as long as the server was not reached.
   * @throws {LinkError} With the server's words, when it refused.
   */
  async connect(
    events: AttemptEvents,
    signal?: AbortSignal,
  ): Promise<ServerLink> {
    const token = await this.options.token?.() ?? "";
    return await this.options.openStream(
      this.#alpn(),
      (stream) =>
        new Promise<ServerLink>((resolve, reject) => {
          const pending = new PendingLink(resolve, reject, events);
          if (stream.alpn === STREAMS_ALPN) {
            this.#serveStreams(stream, token, pending);
          } else this.#callPackets(stream, token, pending);
        }),
      signal,
    );
  }

  #hello(token: string, services: readonly AnnouncedService[]): AgentHello {
    const { agentId, identifiers, instanceId = "" } = this.options;
    return {
      version: LINK_VERSION,
      software: `tunnel/${VERSION}`,
      agentId,
      identifiers: formatIdentifiers(identifiers),
      token,
      capabilities: CAPABILITIES,
      linkIndex: this.#linkIndex++,
      services,
      instanceId,
    };
  }

  get #services(): readonly AnnouncedService[] {
    return this.options.services?.() ?? NO_SERVICES;
  }

  #alpn(): string[] {
    const { carriers, alpnProtocols } = this.options;
    return [
      ...carriers.includes("streams") ? [STREAMS_ALPN] : [],
      ...carriers.includes("packets") ? [...alpnProtocols, HTTP2_ALPN] : [],
    ];
  }

  /** HTTP/2's server is the agent here: the tunnel's server calls it. */
  #serveStreams(stream: Stream, token: string, pending: PendingLink): void {
    const { timers, onDial, observer, keepaliveMs } = this.options;
    const services = this.#services;
    let told: AgentControl | undefined;
    const link = serveStreamsAgent({
      hello: this.#hello(token, services),
      onDial,
      join,
      timers,
      observer,
      messageBytesMax: this.options.messageBytesMax,
      decline: (hello) => pending.decline(hello, "streams"),
      onServerHello: (hello, control) => {
        told = control;
        // They may have changed since the hello left.
        if (this.#services !== services) control.announce(this.#services);
        pending.succeed({
          serverId: hello.serverId,
          instanceId: hello.instanceId,
          serverCount: hello.serverCount,
          carrier: "streams",
          drain: (told) => announceDrain(control, connection, told),
          announce: (services) => control.announce(services),
          check: () => connection.checkLiveness(),
          // One of its streams is the control stream.
          view: () => ({
            ...pulseOf(stream, connection),
            software: hello.software,
            conduits: Math.max(0, connection.openStreams - 1),
          }),
          close: (reason) => {
            control.end(reason);
            connection.shutdown(reason);
          },
        });
      },
      onEvent: (event) => this.#onEvent(event, pending, told),
      onFailed: (error) => {
        pending.over(error.message, error);
        connection.shutdown(error.message);
      },
    });
    const connection = openServerConnection(stream, {
      serves: link.methods,
      timers,
      keepalive: linkKeepalive(keepaliveMs),
      settings: {
        maxFrameSize: LARGE_FRAME_SIZE,
        maxConcurrentStreams: LINK_CONDUITS_MAX,
        ...this.options.linkSettings,
      },
      limits: LINK_LIMITS,
      receiveBudget: this.options.receiveBudget,
      events: {
        onDoubt: (isDoubted) => pending.doubted(isDoubted),
        onClosed: (end) => {
          pending.disconnected(end);
          link.disconnected(end.reason);
        },
      },
    });
  }

  #onEvent(
    event: ServerEvent,
    pending: PendingLink,
    control: AgentControl | undefined,
  ): void {
    switch (event.type) {
      case "reconnect":
        // Another link takes over while this one serves its conduits.
        return pending.retire(event.reason);
      case "drain":
        return pending.drains(event.spreadMs ?? 0);
      case "peer-addresses":
        return pending.peers(event);
      case "ca-bundle": {
        const taken = this.options.onAuthorities?.(event.pem)
          .then((trusted) => control?.trusts(trusted));
        if (taken !== undefined) unawaited("identity", taken);
        return;
      }
      case "service-refusals":
        return this.options.onServicesRefused?.(event.refused);
      case "duplicate-identity":
        return this.options.onDuplicate?.(event.message);
    }
  }

  #callPackets(stream: Stream, token: string, pending: PendingLink): void {
    const { timers, agentId, identifiers, onDial, observer, keepaliveMs } =
      this.options;
    const { instanceId } = this.options;
    const connection = openClientConnection(stream, {
      timers,
      keepalive: this.#foreignPings.keepalive(keepaliveMs),
      receiveBudget: this.options.receiveBudget,
      events: {
        onDoubt: (isDoubted) => pending.doubted(isDoubted),
        onClosed: (end) => {
          const { code, by } = end;
          if (by === "peer" && code === ErrorCode.ENHANCE_YOUR_CALM) {
            this.#foreignPings.complained();
          }
          pending.disconnected(end);
        },
      },
    });
    // Its kernel is asked instead: that costs the server nothing.
    probePeer(stream.descriptor, keepaliveMs);
    const link = new PacketsAgentLink(connection, {
      agentId,
      identifiers: formatIdentifiers(identifiers),
      token,
      instanceId,
      authority: this.options.authority,
      scheme: "https",
      onDial,
      timers,
      observer,
      messageBytesMax: this.options.messageBytesMax,
      onServerInfo: (serverId, serverCount, isOurs, servers) => {
        const unwanted = pending.decline({ serverId }, "packets");
        if (unwanted !== undefined) {
          pending.over(unwanted.message, unwanted);
          link.close(unwanted.message);
          return connection.shutdown(unwanted.message);
        }
        const hasOfferedStreams = this.options.carriers.includes("streams");
        if (isOurs && hasOfferedStreams) this.options.fellBack(serverId);
        if (isOurs) connection.keepAlive(linkKeepalive(keepaliveMs));
        if (this.#services.length > 0) this.options.notAnnounced?.(serverId);
        pending.succeed({
          serverId,
          serverCount,
          carrier: "packets",
          drain: (told) => announceDrain(link, connection, told),
          check: () => connection.checkLiveness(),
          view: () => ({
            ...pulseOf(stream, connection),
            software: "",
            conduits: link.load,
          }),
          close: (reason) => {
            link.close(reason);
            connection.shutdown(reason);
          },
        });
        if (servers.length > 0) pending.peers({ servers, serverCount });
      },
      onClosed: (error) => {
        if (connection.isUsable) pending.over(error.message, error);
        // Else the connection itself says why, in a moment.
        connection.shutdown(error.message);
      },
    });
  }
}

/** Calls `told` when the server has read it. */
function announceDrain(
  link: { drain(): void },
  connection: { echo(then: () => void): void },
  told: () => void,
): void {
  link.drain();
  connection.echo(told);
}

/** The common part of both carriers. */
function pulseOf(
  { remoteAddress }: Stream,
  connection: Pick<
    Connection,
    "lastHeardMs" | "roundTripMs" | "bulkStreams"
  >,
): Omit<LinkPulse, "software" | "conduits"> {
  const { lastHeardMs, roundTripMs, bulkStreams } = connection;
  const address = remoteAddress;
  return { address, lastHeardMs, roundTripMs, bulkConduits: bulkStreams };
}

const NO_SERVICES: readonly AnnouncedService[] = Object.freeze([]);

/** A link that is being made, until it is handed over. */
class PendingLink {
  #state: "pending" | "open" | "over" = "pending";

  constructor(
    private readonly resolve: (link: ServerLink) => void,
    private readonly reject: (error: LinkError) => void,
    private readonly events: AttemptEvents,
  ) {}

  /** The server has sent its hello. @returns Why no link to it is wanted. */
  decline(server: ServerName, carrier: Carrier): LinkError | undefined {
    return this.#state !== "pending" || this.events.claim(server, carrier)
      ? undefined
      : new UnwantedServerError("this server is linked already");
  }

  /** The server is going. */
  drains(spreadMs: number): void {
    if (this.#state === "open") this.events.draining(spreadMs);
  }

  /** The server says where servers are. */
  peers(news: PeerNews): void {
    if (this.#state === "open") this.events.peers?.(news);
  }

  /** The server owes a sign of life, or has given one. */
  doubted(isDoubted: boolean): void {
    if (this.#state === "open") this.events.doubted(isDoubted);
  }

  succeed(link: ServerLink): void {
    if (this.#state !== "pending") return;
    this.#state = "open";
    this.resolve(link);
    this.events.linked?.(link);
  }

  /** The first reason counts: later ones are its consequences. */
  over(reason: string, error: LinkError = new LinkError(reason)): void {
    const before = this.#state;
    this.#state = "over";
    if (before === "pending") this.reject(error);
    if (before === "open") this.events.closed(reason);
  }

  /**
   * The connection is gone. TLS 1.3 lets a server refuse a certificate only
   * after the client's handshake is over, and the platform sends no alert then:
   * an end without a word is how the agent finds out.
   */
  disconnected(
    { reason, error }: Pick<ConnectionEnd, "reason" | "error">,
  ): void {
    if (this.#state !== "pending") return this.over(reason);
    const isRefused = tunnelCodeOf(error) === "TUN206";
    const sentence = isRefused
      ? `${reason}; its log says more`
      : "Cannot link to the server: the connection ended before it said " +
        `hello (${reason}); it may not accept this agent's certificate, its ` +
        "log says why";
    this.over(
      sentence,
      new UnheardError(sentence, isRefused ? error : undefined),
    );
  }

  /** It lives on, but no longer counts as a link to its server. */
  retire(reason: string): void {
    if (this.#state === "open") this.over(reason);
  }
}

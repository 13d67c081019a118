/**
 * The port where agents call in: one connection, one link (or, in the packets
 * carrier, one link per call).
 *
 * TLS requests a certificate and admits every peer; the right to be an agent is
 * checked for each link, so that a refusal is a sentence that the agent can
 * show, not a broken handshake.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { driveHttp2 } from "../../net/http2/http2_driver.ts";
import type { AdmittedConnection } from "../../net/admission/connection_limiter.ts";
import type { Stream as ByteStream } from "../../net/stream/stream.ts";
import { VERSION } from "../../platform/process/version.ts";
import { ErrorCode, WireError } from "../../proto/frames/wire_error.ts";
import { GrpcRouter } from "../../proto/grpc/server.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { CAPABILITIES, CONNECT_PATH } from "../../proto/link/capabilities.ts";
import type { Randomness } from "../../proto/link/dial_handler.ts";
import {
  LINK_VERSION,
  LinkDeclinedError,
  LinkError,
  STREAMS_ALPN,
} from "../../proto/link/hello.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkCandidate,
  LinkRefusal,
  PacketObserver,
} from "../../proto/link/link.ts";
import {
  callerKeepalive,
  LINK_CONDUITS_MAX,
  LINK_LIMITS,
  linkKeepalive,
} from "../../proto/link/link_limits.ts";
import type { PeerServer } from "../../proto/link/link_messages.ts";
import { agentService } from "../../proto/link/packets_server.ts";
import {
  openStreamsServer,
  type StreamsServerLink,
  type StreamsServerOptions,
} from "../../proto/link/streams_server.ts";
import type { AbuseLimits } from "../../proto/streams/abuse_limits.ts";
import { Connection } from "../../proto/streams/connection.ts";
import type {
  ConnectionEnd,
  ConnectionOptions,
} from "../../proto/streams/connection_events.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import {
  refusePush,
  type Stream,
  type StreamEvents,
} from "../../proto/streams/stream.ts";
import {
  LARGE_FRAME_SIZE,
  type LocalSettings,
} from "../../proto/streams/settings.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { meteredStream, watchIdle } from "./metered_stream.ts";

/** A caller here makes one call, or a few; resets are hardly honest. */
const CALL_LIMITS: Partial<AbuseLimits> = {
  resets: { burst: 100, perSecond: 10 },
};

/** A node's proxy makes many: its own programs come and go, and hang up. */
const NODE_LIMITS: Partial<AbuseLimits> = {
  resets: { burst: 4_096, perSecond: 1_000 },
  idleFrames: { burst: 3 * 4_096, perSecond: 3_000 },
};

/** How long a connection that is a node's may be open without a call. */
const NODE_IDLE_MS = 300_000;

/**
 * How long callers that received a GOAWAY are waited for: a call of theirs may
 * be on its way for one round trip.
 */
export const LEAVE_MS = 1_000;

/**
 * How often a link that was replaced is looked at. It is closed when its last
 * conduit is gone, for which nothing waits.
 */
export const RETIRED_CHECK_MS = 10_000;

/**
 * How many agents a second a successor can take while it serves: handshakes of
 * links that come faster delay its traffic.
 */
const SPREAD_LINKS_PER_SECOND = 500;

/** Fewer are no storm. */
const SPREAD_LINKS_MIN = 100;

/** The time over which that many links are moved. */
export function spreadOf(links: number, mostMs: number): number {
  if (links < SPREAD_LINKS_MIN) return 0;
  return Math.min(Math.round(1_000 * links / SPREAD_LINKS_PER_SECOND), mostMs);
}

/**
 * Links that are told something at once: each is a TLS record and a system call,
 * and ten thousand of them would keep all others waiting for a fifth of a second.
 */
const TOLD_AT_ONCE = 64;

/** What happens on the port. For the registry, the log and the metrics. */
export interface AgentPortObserver extends PacketObserver {
  linked(link: AgentLink): void;
  unlinked(link: AgentLink, reason: string): void;
  /** An agent that is linked announces other services, or its drain. */
  changed?(link: AgentLink): void;
  /** An agent that is linked says which authorities it trusts, by their ids. */
  trusts?(link: AgentLink, authorities: readonly string[]): void;
  /** A peer connected and did not become an agent. */
  refused(remoteAddress: string, reason: string, code: Code): void;
  /** +1 and −1 for every connection that carries packets (gRPC `Connect`). */
  counted(change: 1 | -1): void;
  /** A connection is over. */
  ended?(end: ConnectionEnd): void;
  /** Fewer are leaving. */
  left?(): void;
}

/** The report to agents about all servers. */
export interface PeerAnnouncement {
  /** As far as their addresses are known, the sending server's included. */
  readonly servers: readonly PeerServer[];
  /** All there are, the one that sends it included. */
  readonly serverCount: number;
}

/** The identity of a connection's peer. */
export interface ConnectionPeer {
  readonly identity: PeerIdentity;
  /** `ip:port`. */
  readonly remoteAddress: string;
  /**
   * Called when it has shown who it is by a token, or by a node's key.
   *
   * @param looks Handshakes of its source before this one that only looked.
   */
  readonly known?: (looks?: number) => void;
}

/** What `AgentPort` needs from outside. */
export interface AgentPortOptions {
  readonly serverId: string;
  /** How many servers there are now, as agents are told. */
  readonly serverCount: () => number;
  /** See `ServerHello.instanceId`. */
  readonly instanceId: string;
  readonly keepaliveMs: number;
  readonly messageBytesMax: number;
  /** Shared with every connection of the process. */
  readonly receiveBudget: ReceiveBudget;
  /** Whether a peer may be an agent. */
  readonly admit: (candidate: LinkCandidate) => LinkAuthorization;
  readonly timers: Timers;
  readonly randomness: Randomness;
  readonly observer: AgentPortObserver;
  /**
   * Methods that answer every peer, such as health and joining; they receive
   * the peer's identity.
   */
  readonly methodsFor: (
    caller: ConnectionPeer,
  ) => Readonly<Record<string, MethodHandler>>;
  /**
   * Whether a certificate is another server's; absent: servers do not call
   * here.
   */
  readonly isServer?: (identity: PeerIdentity) => boolean;
  /** Sent to each agent once it is admitted: the authorities to trust, PEM. */
  readonly authorities?: () => Uint8Array | undefined;
  /**
   * Also sent to each agent: the addresses of servers; absent: none are known.
   */
  readonly peers?: () => PeerAnnouncement | undefined;
  /** For links; see `ConnectionOptions.firstStreamId`. For tests of the end. */
  readonly firstStreamId?: number | undefined;
  /** For links, beside their frame size. For tests of other windows. */
  readonly linkSettings?: Partial<LocalSettings>;
}

/** Serves accepted connections of agents, nodes and their programs. */
export class AgentPort {
  readonly #connections = new Set<Connection>();
  /** Those on which others call us, and that carry no link. */
  readonly #calls = new Set<Connection>();
  readonly #leaving = new Set<Connection>();
  /** Links of the streams carrier, which receive events. */
  readonly #links = new Set<StreamsServerLink>();
  /** News that some agents have not received yet, by kind. */
  readonly #telling = new Map<string, Timer>();
  /** Links that were replaced, until they are over. */
  readonly #retired = new Map<AgentLink, Timer>();

  /** What links have in common; as closures of each they were 300 bytes. */
  readonly #forLinks: Omit<
    StreamsServerOptions,
    "hello" | "remoteAddress" | "identity"
  >;

  constructor(private readonly options: AgentPortOptions) {
    const { timers, observer } = options;
    this.#forLinks = {
      timers,
      observer,
      admit: (peer, { token }) => options.admit({ peer, token }),
      onChanged: (link) => observer.changed?.(link),
      onTrust: (link, authorities) => observer.trusts?.(link, authorities),
      onClosed: (closed, reason) => {
        this.#links.delete(closed as StreamsServerLink);
        this.#retired.get(closed)?.cancel();
        this.#retired.delete(closed);
        observer.unlinked(closed, reason);
      },
    };
  }

  /**
   * Serves one accepted connection; HTTP/2 begins at once.
   *
   * @param admitted As the process counts it; a certificate makes it known.
   */
  accept(stream: ByteStream, admitted?: AdmittedConnection): void {
    if (stream.identity.kind === "certificate") admitted?.known();
    if (stream.alpn === STREAMS_ALPN) {
      const end = () => stream.close();
      unawaited("link", this.#openStreams(stream, admitted), end);
    } else this.#servePackets(stream, admitted);
  }

  /** Connections that received a GOAWAY, and on which a call may be on its way. */
  get leaving(): number {
    return this.#leaving.size;
  }

  /**
   * Sends all peers to another server: agents of ours by an event, callers by a
   * GOAWAY. Running conduits go on, and peers that come all the same are
   * served. Links of the packets carrier stay, because Go agents drop their
   * connections when they receive a GOAWAY.
   *
   * @param mostMs The longest time over which a big fleet is spread.
   */
  drain(reason: string, mostMs: number): void {
    const spreadMs = spreadOf(this.#links.size, mostMs);
    this.#tellAll("drain", (link) => link.drain(spreadMs));
    for (const connection of this.#calls) this.#leaving.add(connection);
    for (const connection of [...this.#calls]) connection.shutdown(reason);
    if (this.#leaving.size === 0) return;
    this.options.timers.after(LEAVE_MS, () => {
      this.#leaving.clear();
      this.options.observer.left?.();
    });
  }

  /**
   * One agent is asked to go elsewhere; where there is no other server, to make
   * another link here. What runs goes on.
   *
   * @returns Whether its link can say that.
   */
  drainLink(link: AgentLink, where: "elsewhere" | "here"): boolean {
    for (const known of this.#links) {
      if (known !== link) continue;
      if (where === "elsewhere") known.drain(0);
      else {
        known.askToReconnect("the node is being drained", 0);
        this.#closeWhenIdle(known);
      }
      return true;
    }
    return false;
  }

  /** Ends every connection: gracefully what can be, at once what cannot. */
  stop(reason: string): void {
    for (const connection of this.#connections) connection.shutdown(reason);
  }

  /** Sends every agent the authorities that it must trust from now on. */
  announceAuthorities(bundle: Uint8Array): void {
    this.#tellAll("authorities", (link) => link.announceAuthorities(bundle));
  }

  /** Sends every agent where the other servers are from now on. */
  announcePeers({ servers, serverCount }: PeerAnnouncement): void {
    this.#tellAll(
      "peers",
      (link) => link.announcePeers(servers, serverCount),
    );
  }

  /** Earlier news of the same kind is dropped. */
  #tellAll(
    what: "drain" | "authorities" | "peers",
    tell: (link: StreamsServerLink) => void,
  ): void {
    this.#telling.get(what)?.cancel();
    const links = [...this.#links];
    const next = (from: number) => {
      const until = from + TOLD_AT_ONCE;
      for (const link of links.slice(from, until)) {
        if (this.#links.has(link)) tell(link);
      }
      if (until >= links.length) return void this.#telling.delete(what);
      const timer = this.options.timers.after(0, () => next(until));
      this.#telling.set(what, timer);
    };
    next(0);
  }

  /** HTTP/2's client is the server here: it calls its agent. */
  async #openStreams(
    stream: ByteStream,
    admitted?: AdmittedConnection,
  ): Promise<void> {
    const { serverId, serverCount, observer } = this.options;
    const { remoteAddress, identity } = stream;
    let link: StreamsServerLink | undefined;
    const connection = this.#connect(
      { stream, admitted },
      "client",
      refusePush,
      () => link !== undefined && this.#replace(link),
    );
    try {
      link = await openStreamsServer(connection, {
        hello: {
          version: LINK_VERSION,
          software: `tunnel/${VERSION}`,
          serverId,
          serverCount: serverCount(),
          capabilities: CAPABILITIES,
          instanceId: this.options.instanceId,
        },
        remoteAddress,
        identity,
        ...this.#forLinks,
      });
      admitted?.known();
      this.#links.add(link);
      const bundle = this.options.authorities?.();
      if (bundle !== undefined) link.announceAuthorities(bundle);
      const peers = this.options.peers?.();
      if (peers !== undefined) {
        link.announcePeers(peers.servers, peers.serverCount);
      }
      observer.linked(link);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      if (error instanceof LinkDeclinedError) return;
      observer.refused(remoteAddress, error.message, error.tunnelCode);
    }
  }

  /**
   * The 2^30 stream ids of a link are nearly used up: four days at 3,000
   * conduits a second. The agent makes a new link, and this one serves its
   * running conduits.
   */
  #replace(link: StreamsServerLink): void {
    link.askToReconnect("the stream ids of the link are running out", 0);
    this.#closeWhenIdle(link);
  }

  #closeWhenIdle(link: StreamsServerLink): void {
    const timer = this.options.timers.after(RETIRED_CHECK_MS, () => {
      if (link.load > 0) this.#closeWhenIdle(link);
      else link.close("the link was replaced by a new one");
    });
    this.#retired.set(link, timer);
  }

  #servePackets(stream: ByteStream, admitted?: AdmittedConnection): void {
    const { serverId, serverCount, timers, observer } = this.options;
    const { remoteAddress, identity } = stream;
    const connection: Connection = this.#connect(
      { stream, admitted },
      "server",
      (stream) => router.accept(stream),
    );
    const router = new GrpcRouter({
      timers,
      methods: {
        ...this.options.methodsFor({
          identity,
          remoteAddress,
          known: (looks) => admitted?.known({ looks }),
        }),
        [CONNECT_PATH]: agentService({
          serverId,
          serverCount,
          servers: () => this.options.peers?.()?.servers ?? [],
          remoteAddress,
          identity,
          connection,
          timers,
          randomness: this.options.randomness,
          messageBytesMax: this.options.messageBytesMax,
          observer,
          admit: (peer, token) => this.#authorizeCall({ peer, token }),
          onLink: (link) => {
            admitted?.known();
            this.#calls.delete(connection);
            // Go's clients answer every PING; its servers count them.
            connection.keepAlive(linkKeepalive(this.options.keepaliveMs));
            observer.counted(1);
            observer.linked(link);
          },
          onLinkClosed: (link, reason) => {
            observer.counted(-1);
            observer.unlinked(link, reason);
          },
        }),
      },
    });
  }

  #connect(
    { stream, admitted }: {
      stream: ByteStream;
      admitted: AdmittedConnection | undefined;
    },
    role: "client" | "server",
    onStream: (stream: Stream) => StreamEvents,
    onExhausted: () => void = () => {},
  ): Connection {
    const { timers, receiveBudget } = this.options;
    const isLink = role === "client";
    const isNode = stream.identity.kind === "certificate";
    const watch: { stop?: () => void; isOver?: true } = {};
    const connection = new Connection({
      role,
      clock: timers,
      ...this.#tuning(stream.identity, isLink),
      receiveBudget,
      sharedLimits: admitted,
      firstStreamId: isLink ? this.options.firstStreamId ?? 1 : undefined,
      events: {
        onStream,
        onExhausted,
        onClosed: (end) => {
          this.#connections.delete(connection);
          this.#calls.delete(connection);
          if (this.#leaving.delete(connection)) this.options.observer.left?.();
          watch.isOver = true;
          watch.stop?.();
          if (end.error instanceof WireError) admitted?.fault();
          this.options.observer.ended?.(end);
        },
      },
    });
    this.#connections.add(connection);
    if (!isLink) this.#calls.add(connection);
    connection.start();
    const refused = (reason: string) =>
      this.options.observer.refused(stream.remoteAddress, reason, "TUN409");
    const over = (reason: string) => {
      refused(reason);
      connection.abort(ErrorCode.ENHANCE_YOUR_CALM, reason);
    };
    const metered = admitted === undefined
      ? stream
      : meteredStream(stream, admitted, timers, over);
    driveHttp2(metered, connection, timers);
    // A link is watched by its hello, and then by its keepalive.
    if (isLink || watch.isOver) return connection;
    watch.stop = watchIdle(connection, {
      timers,
      isUnauthenticated: () => admitted?.isUnauthenticated ?? false,
      idleMs: isNode ? NODE_IDLE_MS : undefined,
      ended: refused,
    });
    return connection;
  }

  #tuning(
    identity: PeerIdentity,
    isLink: boolean,
  ): Pick<ConnectionOptions, "keepalive" | "settings" | "limits"> {
    const { keepaliveMs, linkSettings, isServer } = this.options;
    // A server's carries what all of its callers do, as a link does.
    if (isLink || isServer?.(identity)) {
      const more = isLink
        ? linkSettings
        // They end at the same time.
        : { maxConcurrentStreams: LINK_CONDUITS_MAX };
      return {
        keepalive: linkKeepalive(keepaliveMs),
        settings: { maxFrameSize: LARGE_FRAME_SIZE, ...more },
        limits: LINK_LIMITS,
      };
    }
    return {
      keepalive: callerKeepalive(keepaliveMs),
      limits: identity.kind === "certificate" ? NODE_LIMITS : CALL_LIMITS,
    };
  }

  /** A call that is refused ends without another word to us. */
  #authorizeCall(candidate: LinkCandidate): LinkAuthorization {
    const reported = (refusal: LinkRefusal | undefined) => {
      if (refusal === undefined) return undefined;
      const { remoteAddress } = candidate.peer;
      this.options.observer.refused(
        remoteAddress,
        refusal.message,
        refusal.tunnelCode ?? "TUN320",
      );
      return refusal;
    };
    const decision = this.options.admit(candidate);
    return decision instanceof Promise
      ? decision.then(reported)
      : reported(decision);
  }
}

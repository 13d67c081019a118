/**
 * A dial's way to another server, and a dial under way there: it waits for a
 * connection, asks over it, and asks a second time when that connection was
 * just closing.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { wishFields } from "../../proto/link/dial_wishes.ts";
import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import type { ChannelConnection } from "../../net/channel/channel.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import {
  type DialEvents,
  EARLY_BYTES_MAX,
  type LinkDialOptions,
  type PendingDial,
} from "../../proto/link/link.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import {
  formatTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../../proto/peer/trace_context.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { dialIdOf } from "../../proto/link/dial_handler.ts";
import type { Forwarder, IdentifiedDial } from "../routing/dialer.ts";
import type { DialWay } from "../routing/dial_way.ts";
import { FORWARDED_FIELD } from "./forwarded_caller.ts";
import { PeerServer, type PeerServerOptions } from "./peer_server.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { Peer } from "../peers/peers.ts";

/**
 * How long one dial waits for a connection to a server. It takes a few round
 * trips; a caller with early bytes waits for it before another server is asked.
 */
export const PEER_CONNECT_MS = 3_000;

/** Connections that are made for one dial, as each takes no call. */
const CONNECTIONS_MAX = 3;

/** The way to one server for one dial. */
export class PeerWay implements DialWay {
  readonly agentId = undefined;

  constructor(
    readonly leadsTo: PeerServer,
    private readonly request: IdentifiedDial,
    private readonly hasOthers: boolean,
  ) {}

  get forwardedTo(): string {
    return this.leadsTo.serverId;
  }

  get name(): string {
    return `server ${this.leadsTo.name}`;
  }

  dial(events: DialEvents, options: LinkDialOptions): PendingDial {
    const { leadsTo, request, hasOthers } = this;
    const { node, oneAgent } = request;
    const wishes = wishFields({ node, oneAgent, hasOthers });
    const dial = new PeerDial(leadsTo, request, wishes, events, options);
    dial.start();
    return dial;
  }

  /** The other server knows its agents, and says which one it was. */
  named(error: DialError): DialError {
    const { reason, message } = error;
    const { address } = this.request.target;
    if (reason === "link-lost") {
      return new DialError(
        reason,
        `Cannot dial ${address}: ${this.name} was lost: ${message}`,
      );
    }
    if (reason !== "no-agent" || !this.leadsTo.mayBeNamed(this.request)) {
      return error;
    }
    return new DialError(
      reason,
      `${message} (asked ${this.name})`,
      { code: error.tunnelCode },
    );
  }
}

class PeerDial implements PendingDial {
  #state: "waiting" | "asked" | "connected" | "over" = "waiting";
  /** Connections that were made for it, and how often it was asked. */
  #connections = 0;
  #asks = 0;
  #wait: Timer | undefined;
  #pending: PendingDial | undefined;
  /**
   * Bytes that leave with the dial or left after it: a second attempt sends all
   * of them again.
   */
  #early: Uint8Array;
  readonly #trace: TraceContext | undefined;

  constructor(
    private readonly server: PeerServer,
    private readonly request: IdentifiedDial,
    private readonly wishes: readonly (readonly [string, string])[],
    private readonly events: DialEvents,
    options: LinkDialOptions,
  ) {
    this.#early = options.earlyData ?? new Uint8Array(0);
    this.#trace = options.trace;
  }

  start(): void {
    const refusal = this.server.enter();
    if (refusal === undefined) return this.#go();
    this.#state = "over";
    this.events.onFailed(refusal);
  }

  cancel(): void {
    if (this.#state === "connected") return;
    this.#pending?.cancel();
    this.#over();
  }

  /** For byte streams: datagrams wait for the answer (`ongoing_dial.ts`). */
  sendEarly(bytes: Uint8Array): number {
    const room = EARLY_BYTES_MAX - this.#early.length;
    const sent = this.#state === "waiting"
      ? Math.min(bytes.length, room)
      : this.#pending?.sendEarly?.(bytes) ?? 0;
    if (sent === 0) return 0;
    this.#early = joinedBytes([this.#early, bytes.subarray(0, sent)]);
    return sent;
  }

  #go(): void {
    this.#state = "waiting";
    const connection = this.server.take();
    if (connection !== undefined) return this.#ask(connection);
    if (++this.#connections > CONNECTIONS_MAX) {
      return this.#lost("it refuses calls on each new connection");
    }
    this.#wait ??= this.server.options.timers.after(
      PEER_CONNECT_MS,
      () => this.#lost(`no connection within ${PEER_CONNECT_MS} ms`),
    );
    const connecting = this.server.connect().then(
      () => {
        if (this.#state === "waiting") this.#go();
      },
      (error: Error) => this.#lost(error.message),
    );
    unawaited("dial", connecting, () => this.#lost(INTERNAL_ERROR));
  }

  #ask(connection: ChannelConnection): void {
    const metadata = this.#metadata();
    if (metadata instanceof DialError) return this.#fail(metadata);
    this.#wait?.cancel();
    this.#wait = undefined;
    this.#state = "asked";
    const { timers, observer, messageBytesMax } = this.server.options;
    const { authority, scheme, http2 } = connection;
    const asks = ++this.#asks;
    const pending = dialProxy(http2, this.request.target, {
      onConnected: (conduit) => {
        this.#pending = undefined;
        this.#state = "connected";
        this.events.onConnected(conduit);
      },
      onFailed: (error) => this.#onFailed(error, connection),
    }, {
      authority,
      scheme,
      metadata,
      timers,
      dialId: dialIdOf(this.request.id),
      observer,
      messageBytesMax,
      observing: {
        onOver: () => {
          if (this.#state === "connected") this.#over();
        },
      },
      earlyData: this.#early.length === 0 ? undefined : this.#early,
    });
    // It may have been refused at once, and a new one may exist by now.
    const isOpen = this.#state === "asked" && asks === this.#asks;
    if (isOpen) this.#pending = pending;
  }

  #metadata(): Metadata | DialError {
    const trace = this.#trace;
    try {
      return new Metadata({
        [FORWARDED_FIELD]: this.server.describe(this.request),
        ...Object.fromEntries(this.wishes),
        ...(trace === undefined
          ? {}
          : { [TRACEPARENT_FIELD]: formatTraceparent(trace) }),
      });
    } catch (error) {
      if (error instanceof DialError) return error;
      throw error;
    }
  }

  /** A call that was refused unread is made again, over another connection. */
  #onFailed(error: DialError, connection: ChannelConnection): void {
    this.#pending = undefined;
    if (this.#state === "over") return;
    if (error.loss !== "unprocessed") return this.#fail(meaningOf(error));
    connection.leave("the server takes no more calls");
    this.#go();
  }

  #lost(why: string): void {
    if (this.#state !== "waiting") return;
    this.#fail(new DialError("link-lost", why, { loss: "unprocessed" }));
  }

  #fail(error: DialError): void {
    this.#over();
    this.events.onFailed(error);
  }

  /** The dial, or its outcome. */
  #over(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#wait?.cancel();
    this.server.leave();
  }
}

/** What the other server's answer means here, where more servers can be asked. */
function meaningOf(error: DialError): DialError {
  const { reason, message } = error;
  // It looked for an agent, and asked none.
  if (reason === "no-agent") {
    return new DialError(reason, message, {
      loss: "unprocessed",
      code: error.tunnelCode,
    });
  }
  // Its agent was lost while the dial was pending.
  return reason === "link-lost" && error.loss === undefined
    ? new DialError(reason, message, {
      loss: "unanswered",
      code: error.tunnelCode,
    })
    : error;
}

/** What `PeerForwarder` needs from outside. */
export interface PeerForwarderOptions extends PeerServerOptions {
  upstreamTo(peer: Peer): Upstream;
}

/**
 * Sends dials to other servers: one channel to each, kept while it is used.
 */
export class PeerForwarder implements Forwarder {
  /** By id and address, so a server that has moved counts as a new one. */
  readonly #servers = new Map<string, PeerServer>();

  constructor(private readonly options: PeerForwarderOptions) {}

  /** Servers with a channel. */
  get servers(): number {
    return this.#servers.size;
  }

  wayTo(peer: Peer, request: IdentifiedDial, hasOthers: boolean): DialWay {
    return new PeerWay(this.#serverOf(peer), request, hasOthers);
  }

  /** Ends everything. */
  stop(reason: string): void {
    for (const server of this.#servers.values()) server.abort(reason);
    this.#servers.clear();
  }

  #serverOf(peer: Peer): PeerServer {
    const key = JSON.stringify([peer.serverId, peer.address]);
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const server: PeerServer = new PeerServer(
      peer,
      this.options.upstreamTo(peer),
      this.options,
      () => {
        if (this.#servers.get(key) === server) this.#servers.delete(key);
      },
    );
    this.#servers.set(key, server);
    return server;
  }
}

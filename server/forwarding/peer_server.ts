/**
 * One other server, as long as dials are sent there: its channel, the number of
 * its conduits, and whether the server has stopped.
 *
 * @module
 */

import { Channel, type ChannelConnection } from "../../net/channel/channel.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { LINK_LIMITS } from "../../proto/link/link_limits.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { KeepaliveOptions } from "../../proto/streams/keepalive.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { LARGE_FRAME_SIZE } from "../../proto/streams/settings.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { type Peer, peerName } from "../peers/peers.ts";
import type { CallerDial } from "../routing/dialer.ts";
import { encodeForwarded } from "./forwarded_caller.ts";

/**
 * Windows for dials and conduits between two servers, in each direction: a
 * quarter of a link's, because a forwarded conduit costs two servers and is the
 * exception.
 */
export const PEER_CONDUITS_MAX = 16_384;

/** A channel without traffic is closed after this time. */
export const PEER_IDLE_MS = 60_000;

/**
 * For this long after a failed connection, dials go to other servers without
 * another attempt.
 */
export const PEER_FAILED_MS = 1_000;

/** The common options for all servers. */
export interface PeerServerOptions {
  readonly timers: Timers;
  /** Ours. */
  readonly serverId: string;
  /** Our policy decides about dials. */
  readonly hasPolicy: boolean;
  readonly observer: PacketObserver;
  readonly messageBytesMax: number;
  readonly keepalive: KeepaliveOptions;
  readonly receiveBudget: ReceiveBudget;
}

/** See the module description. */
export class PeerServer {
  readonly name: string;
  readonly serverId: string;
  readonly #channel: Channel;
  /** The connection that was used last. */
  #last: ChannelConnection | undefined;
  /** Since when there is an attempt to connect. */
  #connectingMs: number | undefined;
  #load = 0;
  #timer: Timer | undefined;
  #isAborted = false;

  /** @param idle It was not used for a while, and is closed. */
  constructor(
    peer: Peer,
    upstream: Upstream,
    readonly options: PeerServerOptions,
    private readonly idle: () => void,
  ) {
    this.name = peerName(peer);
    this.serverId = peer.serverId;
    const { timers, keepalive, receiveBudget } = options;
    this.#channel = new Channel({
      upstream,
      timers,
      keepalive,
      settings: { maxFrameSize: LARGE_FRAME_SIZE },
      receiveBudget,
      // It carries what all callers of ours do, as a link does.
      limits: LINK_LIMITS,
      failedMs: PEER_FAILED_MS,
    });
  }

  /** Dials and conduits. */
  get load(): number {
    return this.#load;
  }

  /** Since when it owes a sign of life, or a connection. */
  get askedMs(): number | undefined {
    const connection = this.#usable;
    return connection === undefined ? this.#connectingMs : connection.askedMs;
  }

  get isProven(): boolean {
    return this.#usable?.isProven === true;
  }

  checkLiveness(): void {
    this.#usable?.checkLiveness();
  }

  /** After a dial, which has asked for a connection if there was none. */
  whenAlive(then: () => void): void {
    if (this.#usable !== undefined) return this.#usable.whenAlive(then);
    const connected = this.connect()
      .then(() => this.#usable?.whenAlive(then), () => {});
    unawaited("dial", connected);
  }

  get #usable(): Connection | undefined {
    const connection = this.#last?.http2;
    return connection?.isUsable ? connection : undefined;
  }

  /** Begins a dial. @returns Why there may be none. */
  enter(): DialError | undefined {
    if (this.#load >= PEER_CONDUITS_MAX) {
      return new DialError(
        "refused",
        `Cannot forward this dial: server ${this.name} carries ` +
          `${this.#load} connections of ours, and no more are sent there`,
        { loss: "unprocessed", code: "TUN409" },
      );
    }
    this.#load++;
    this.#timer?.cancel();
    return undefined;
  }

  /** The dial failed, or its conduit is over. */
  leave(): void {
    this.#load--;
    if (this.#load > 0 || this.#isAborted) return;
    this.#timer?.cancel();
    this.#timer = this.options.timers.after(PEER_IDLE_MS, () => {
      this.#channel.close("nothing was forwarded for a while");
      this.idle();
    });
  }

  /** A connection that takes one more call, which is made in this turn. */
  take(): ChannelConnection | undefined {
    const connection = this.#channel.take();
    if (connection !== undefined) this.#last = connection;
    return connection;
  }

  /** @throws {Error} One sentence. */
  async connect(): Promise<void> {
    this.#connectingMs ??= this.options.timers.now();
    try {
      await this.#channel.connect();
    } finally {
      this.#connectingMs = undefined;
    }
  }

  /** The fields that it sends with a dial. @throws {DialError} */
  describe({ caller }: CallerDial): Uint8Array {
    const { hasPolicy, serverId } = this.options;
    return encodeForwarded({ caller, hasPolicy }, serverId);
  }

  /** Whether its name is for this caller, as the names of nodes are. */
  mayBeNamed({ caller }: CallerDial): boolean {
    return !this.options.hasPolicy && caller.node === undefined;
  }

  /** Ends everything. */
  abort(reason: string): void {
    this.#isAborted = true;
    this.#timer?.cancel();
    this.#channel.abort(reason);
  }
}

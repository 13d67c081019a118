/**
 * Connections for programs on this machine: a program that sends HTTP CONNECT
 * on loopback is connected through the tunnel under the node's identity, if the
 * server allows the node.
 *
 * Programs ask for a host and a port, or for a virtual address from discovery,
 * which the server translates.
 *
 * @module
 */

import { portOf } from "../../proto/peer/host_port.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { TunnelDialer } from "../../client/tunnel_dialer.ts";
import { relayDial } from "../../client/relayed_dial.ts";
import { ConnectSession } from "../../net/http1/connect_session.ts";
import { refusalBytes, turnAway } from "../../net/http1/refusal.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenTcp,
} from "../../net/listen/listeners.ts";
import { ListenError } from "../../net/bind/listen_error.ts";
import type { Log } from "../../platform/log/log.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { connectHost, MORE_CONNECT_MAX } from "../../proto/xds/relay_fields.ts";

/** Connections of all programs at once: what a server lets one node have. */
const RELAYED_CONNECTIONS_MAX = 4_096;

/** What the relay needs from outside. */
interface ConnectRelayOptions {
  /** An address of loopback: the caller has seen to it. */
  readonly listen: ListenAddress;
  /** To servers, as the node. */
  readonly dialer: TunnelDialer;
  readonly log: Log;
  /** After every change of {@linkcode ConnectRelay.load}. */
  loadChanged?(): void;
}

export class ConnectRelay {
  readonly #listener: BoundListener;
  /** Also at the same port of other loopback addresses. */
  readonly #more: readonly BoundListener[];
  readonly #clients = new Set<Conduit>();
  #isShut = false;

  /** @throws {ListenError} */
  constructor(private readonly options: ConnectRelayOptions) {
    this.#listener = this.#listen(options.listen);
    this.#more = [...this.#listenMore()];
  }

  #listen(at: ListenAddress): BoundListener {
    return listenTcp(at, {
      onConnection: (conn) =>
        unawaited("socket", this.#accept(conn), () => conn.close()),
      onProblem: (line) => this.options.log.warn(line, { code: "TUN513" }),
    });
  }

  /** Not every system has all of 127/8, and a port may be taken there. */
  *#listenMore(): Iterable<BoundListener> {
    const { address } = this.#listener;
    if (!address.startsWith("127.")) return;
    const port = portOf(address);
    for (let number = 1; number <= MORE_CONNECT_MAX; number++) {
      try {
        yield this.#listen({ hostname: connectHost(number), port });
      } catch (error) {
        if (!(error instanceof ListenError)) throw error;
        return;
      }
    }
  }

  /** `ip:port` as bound. */
  get address(): string {
    return this.#listener.address;
  }

  /** The number of further `connectHost` addresses that it listens on. */
  get more(): number {
    return this.#more.length;
  }

  /** Clients, connected or on their way to it. */
  get load(): number {
    return this.#clients.size;
  }

  /** No new clients; those there are go on. */
  shutdown(): void {
    if (!this.#isShut) {
      for (const one of [this.#listener, ...this.#more]) one.close();
    }
    this.#isShut = true;
  }

  /** Ends everything now. */
  close(reason: string): void {
    this.shutdown();
    for (const client of [...this.#clients]) client.reset(reason);
  }

  async #accept(conn: Stream): Promise<void> {
    if (this.#clients.size >= RELAYED_CONNECTIONS_MAX) {
      const full =
        `this relay serves ${RELAYED_CONNECTIONS_MAX} connections at once`;
      return await turnAway(conn, refusalBytes(503, full));
    }
    const client = conduitOf(conn);
    this.#clients.add(client);
    new ConnectSession(client, conn.remoteAddress, {
      timers: systemTimers,
      dial: ({ target, node, id, trace, takeEarlyData }, answer) =>
        relayDial(
          this.options.dialer,
          { target, node, id, trace, takeEarlyData },
          answer,
        ),
      join,
      refused: (status, message) =>
        this.options.log.event(
          `CONNECT refused with ${status}: ${message}`,
          {},
          message,
        ),
      closed: () => {
        this.#clients.delete(client);
        this.options.loadChanged?.();
      },
    });
  }
}
